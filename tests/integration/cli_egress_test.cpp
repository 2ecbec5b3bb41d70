// What the command line does with an egress plugin; this one proxies nothing and records what it is given.
#include <signal.h>
#include <sys/stat.h>

#include <boost/json.hpp>

#include "cli_support.hpp"
#include "egress_config.hpp"
#include "registry.hpp"

using namespace ccbox;
using namespace ccbox::test;
namespace json = boost::json;

namespace {

struct scene {
  temporary_directory dir;
  std::string manifest, rules, record = dir / "record";

  scene() {
    manifest =
        dir.write("plugins.yaml",
                  "plugins:\n  - path: bubblewrap.so\n    priority: 100\n  - path: none.so\n"
                  "  - path: " CCBOX_TEST_BINARY_DIR "/tests/plugins/fake_egress.so\n    options: {record: " +
                      record + "}\n");
    rules = write_rules("");
    dir.write("work/x", "");
  }
  std::string write_rules(const std::string& more_entries) {
    return dir.write(
        "egress.yaml",
        "baseline:\n  llm:\n    why: w\n    domains: |\n      llm.test a model\n" + more_entries +
            "github:\n  api:\n    why: w\n    domains: |\n      api.git.test API\n"
            "ticketing:\n  linear:\n    why: w\n    domains: |\n      linear.test tickets\n"
            "optional: {}\ndenied:\n  sinks:\n    why: w\n    domains: |\n      sink.test telemetry\n"
            "floor: {}\n");
  }
  arguments files() const { return {"--plugins", manifest, "--egress-config", rules}; }
  run_options at_work() const {
    run_options options;
    options.cwd = dir / "work";
    return options;
  }
  finished ccbox(const arguments& words) const { return run(arguments{ccbox_program()} + words, at_work()); }
  finished run_in(const arguments& options, const arguments& command) const {
    return ccbox(arguments{"run"} + files() + options + arguments{"--"} + command);
  }
  std::string recorded() const { return read_file(record); }
};

}  // namespace

TEST_CASE("a run's command finds the proxies, and the helper for ssh") {
  scene s;
  const auto done =
      s.run_in({"--quiet"}, {"sh", "-c", "echo $HTTP_PROXY; test -x /run/ccbox/bin/net-connect"});
  CHECK(done.code == 0);
  CHECK(done.out.starts_with("http://127.0.0.1:"));
  CHECK(done.err.empty());
  CHECK(contains(s.recorded(), "rule 1 0 llm.test|baseline.llm|a model\n"));
  CHECK(contains(s.recorded(), "rule 2 0 sink.test|denied.sinks|telemetry\n"));
  CHECK(s.recorded().ends_with("destroy \n"));
  CHECK_FALSE(contains(s.recorded(), "left open"));
}

TEST_CASE("the files of the proxies themselves are out of reach of the commands") {
  scene s;
  const auto credentials = s.dir.write("work/credentials", "user:password\n");
  REQUIRE(::chmod(credentials.c_str(), 0600) == 0);
  const auto record = s.dir.write("work/logs/record", "");
  s.manifest =
      s.dir.write("plugins.yaml",
                  "plugins:\n  - path: bubblewrap.so\n"
                  "  - path: " CCBOX_TEST_BINARY_DIR "/tests/plugins/fake_egress.so\n    options: {record: " +
                      record + "}\n");
  s.write_rules("settings:\n  upstream: http://127.0.0.1:1\n  upstream_credentials_file: " + credentials +
                "\n");
  const auto done = s.run_in({"--quiet"}, {"sh", "-c",
                                           "cat credentials; echo x:y > credentials; rm -f credentials; "
                                           "echo forged >> logs/record; rm -f logs/record; mv logs other; "
                                           "ls logs/record"});
  CHECK(done.out == "logs/record\n");
  CHECK(read_file(credentials) == "user:password\n");
  CHECK_FALSE(contains(read_file(record), "forged"));
  CHECK(contains(read_file(record), "option upstream_credentials_file"));
}

TEST_CASE("options add destinations, and groups for who may use them") {
  scene s;
  CHECK(s.run_in({"--allow-domain", "mine.test", "--allow-domain", "*.x.test:8443", "--ticketing", "linear"},
                 {"true"})
            .code == 0);
  CHECK(contains(s.recorded(), "rule 1 0 mine.test|egressAllowlist|"));
  CHECK(contains(s.recorded(), "rule 1 0 *.x.test:8443|egressAllowlist|"));
  CHECK(contains(s.recorded(), "rule 1 0 linear.test|ticketing.linear|tickets\n"));
  CHECK_FALSE(contains(s.recorded(), "api.git.test"));
  const auto word = s.run_in({"--allow-domain", "git"}, {"true"});
  CHECK(word.code == 125);
  CHECK(contains(word.err, "'git' is a name without a dot"));
  CHECK(s.run_in({"--allow-domain", "git:443", "--allow-domain", "git."}, {"true"}).code == 0);
  const auto unknown = s.run_in({"--ticketing", "jira"}, {"true"});
  CHECK(unknown.code == 125);
  CHECK(contains(unknown.err, "there is no ticketing group 'jira'"));
  CHECK(contains(unknown.err, "the groups are: linear"));
}

TEST_CASE("an entry that the floor or a denied group always refuses is refused, whatever the command") {
  scene s;
  s.manifest = s.dir.write("real.yaml",
                           "plugins:\n  - path: bubblewrap.so\n    priority: 100\n  - path: none.so\n"
                           "  - path: egress.so\n");
  const std::pair<std::string, std::string> entries[] = {
      {"169.254.169.254",
       "it is among cloud metadata addresses (built in), which nothing opens; leave it out"},
      {"metadata.google.internal", "and nothing opens it; leave it out"},
      {"localhost:8080", "write 127.0.0.1:8080 instead"},
      {"sink.test:8443",
       "the rule sink.test (denied.sinks) denies it: telemetry; leave it out, or take that "
       "rule out"}};
  for (const auto& [entry, why] : entries) {
    const arguments option{"--allow-domain", "fine.test", "--allow-domain", entry};
    for (const arguments& command : {arguments{"run"} + s.files() + option + arguments{"--", "true"},
                                     arguments{"explain"} + s.files() + option,
                                     arguments{"check", "domain", "x.test"} + s.files() + option,
                                     arguments{"proxy"} + s.files() + option}) {
      CAPTURE(command[0]);
      const auto refused = s.ccbox(command);
      CHECK(refused.code == 125);
      CHECK_MESSAGE(contains(refused.err, "ccbox: error: --allow-domain '" + entry + "': allows nothing: "),
                    refused.err);
      CHECK_MESSAGE(contains(refused.err, why), refused.err);
    }
  }
  // 127.0.0.1 means its ports 80 and 443, as every entry without a port.
  CHECK(s.run_in({"--allow-domain", "127.0.0.1"}, {"true"}).code == 0);
  const auto spec = s.ccbox(arguments{"run"} + s.files() +
                            arguments{"--spec-json",
                                      R"({"sessionId":"s","workspaceId":"w",)"
                                      R"("egressAllowlist":["fine.test","sink.test"]})",
                                      "--", "true"});
  CHECK(spec.code == 125);
  CHECK_MESSAGE(contains(spec.err, "egressAllowlist[1]: 'sink.test': allows nothing: "), spec.err);
  s.write_rules("enable: [more]\n");
  const auto rules = read_file(s.rules);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = rules;
    text.replace(text.find(from), from.size(), to);
    s.dir.write("egress.yaml", text);
    return s.run_in({}, {"true"});
  };
  const std::string more = "optional:\n  more:\n    why: w\n    domains: |\n      ";
  CHECK(with("optional: {}", more + "fine.test fine").code == 0);
  const auto shadowed = with("optional: {}", more + "sink.test a sink");
  CHECK(shadowed.code == 125);
  CHECK_MESSAGE(contains(shadowed.err, "'sink.test'"), shadowed.err);
  const auto metadata = with("optional: {}", more + "metadata.goog credentials");
  CHECK(metadata.code == 125);
  CHECK_MESSAGE(contains(metadata.err, s.rules + ":21: 'metadata.goog': allows nothing: "), metadata.err);
}

TEST_CASE("what was refused is a line at the end of a run, unless it is to be quiet") {
  scene s;
  const arguments denied{"--allow-domain", "deny-at-open.test", "--allow-domain", "deny-at-close.test"};
  const auto done = s.run_in(denied, {"sh", "-c", "echo out; exit 3"});
  CHECK(done.code == 3);
  CHECK(done.out == "out\n");
  CHECK(contains(done.err,
                 "ccbox: refused a connection to deny-at-close.test:443: blocked-by-allowlist; allow it with "
                 "--allow-domain 'deny-at-close.test'\n"
                 "ccbox: refused a connection to deny-at-open.test:443: blocked-by-allowlist; allow it with "
                 "--allow-domain 'deny-at-open.test'\n"));
  CHECK(s.run_in(denied + arguments{"--quiet"}, {"true"}).err.empty());
}

TEST_CASE("what was allowed and not reached is a line at the end of a run, and an event with --json") {
  scene s;
  const arguments option{"--allow-domain", "fail-at-open.test"};
  const auto done = s.run_in(option, {"true"});
  CHECK(done.code == 0);
  CHECK_MESSAGE(
      contains(done.err, "ccbox: a connection to fail-at-open.test:443 failed: dns-timeout; it is allowed\n"),
      done.err);
  CHECK_FALSE(contains(done.err, "refused"));
  CHECK(s.run_in(option + arguments{"--quiet"}, {"true"}).err.empty());
  const auto events = s.run_in(option + arguments{"--json"}, {"true"});
  CHECK_MESSAGE(
      contains(events.out, R"("type":"unreachable","unreachable":{"target":"fail-at-open.test:443",)"
                           R"("reason":"dns-timeout","count":1})"),
      events.out);
  CHECK_FALSE(contains(events.out, R"("type":"violation")"));
}

TEST_CASE("with --json refusals are violation events and no lines") {
  scene s;
  const auto done = s.run_in({"--json", "--allow-domain", "deny-at-open.test"}, {"true"});
  CHECK(done.code == 0);
  CHECK(contains(
      done.out,
      R"("type":"violation","violation":{"action":"network-outbound","target":"deny-at-open.test:443")"));
  CHECK_FALSE(contains(done.err, "refused a connection"));
}

TEST_CASE("check domain answers with reason, rule and remedy, and by its exit code") {
  scene s;
  const auto allowed = s.ccbox(arguments{"check", "domain", "llm.test"} + s.files());
  CHECK(allowed.code == 0);
  CHECK(contains(allowed.out, "'llm.test:443'\n  allowed  yes\n"));
  CHECK(contains(allowed.out, "rule     the rule\n"));
  const auto refused = s.ccbox(arguments{"check", "domain", "evil.test:8443"} + s.files());
  CHECK(refused.code == 1);
  CHECK(contains(refused.out, "'evil.test:8443'\n  allowed  no\n  reason   blocked-by-allowlist\n"));
  CHECK(contains(refused.out, "remedy   allow it with --allow-domain 'evil.test:8443'\n"));
  const auto off = s.ccbox(arguments{"check", "domain", "llm.test", "--no-network"} + s.files());
  CHECK(off.code == 1);
  CHECK(contains(off.out, "the session's network is off"));
  CHECK(contains(off.out, "because  llm.test:443 is refused: the network is off"));
  CHECK(s.ccbox(arguments{"check", "domain", "mine.test", "--allow-domain", "mine.test"} + s.files()).code ==
        0);
  const auto open =
      s.ccbox(arguments{"check", "domain", "evil.test", "--without", "net_proxy_only"} + s.files());
  CHECK(open.code == 0);
  CHECK(contains(open.out, "the network is the host's"));
  CHECK_FALSE(contains(s.recorded(), "left open"));
}

TEST_CASE("check domain says how this host is reached") {
  scene s;
  s.manifest = s.dir.write("real.yaml", "plugins:\n  - path: none.so\n  - path: egress.so\n");
  const auto refused = s.ccbox(arguments{"check", "domain", "localhost:8080"} + s.files());
  CHECK(refused.code == 1);
  CHECK_MESSAGE(
      contains(refused.out,
               "remedy   ask for '127.0.0.1:8080', allow it with --allow-domain '127.0.0.1:8080', and "
               "set NO_PROXY= for the command\n"),
      refused.out);
}

// A start asks the plugin about no entry of the shipped file (`as_built`): this is who has.
TEST_CASE("the shipped plugin takes every entry of the shipped egress file") {
  manifest both;
  both.plugins.emplace_back().path = CCBOX_TEST_BINARY_DIR "/plugins/egress.so";
  const auto plugins = registry::build(both, CCBOX_PROBE_QUICK);
  REQUIRE(plugins.has_value());
  REQUIRE((*plugins)->find_egress());
  const egress_plugin* proxies = (*plugins)->find_egress();
  const auto shipped = load_egress_config(CCBOX_TEST_SOURCE_DIR "/config/egress.yaml");
  REQUIRE(shipped.has_value());
  CHECK(shipped->as_built);
  CHECK(check_entries(*shipped, *proxies).has_value());
  auto broken = *shipped;
  broken.optional.back().entries.back().pattern = "*.com";
  CHECK_FALSE(check_entries(broken, *proxies).has_value());
}

TEST_CASE("check domain answers as JSON, and refuses what is no question") {
  scene s;
  const auto done = s.ccbox(arguments{"check", "domain", "evil.test", "--json"} + s.files());
  CHECK(done.code == 1);
  const auto answer = json::parse(done.out).as_object();
  CHECK(answer.at("domain").as_string() == "evil.test");
  CHECK(answer.at("port").to_number<int>() == 443);
  CHECK_FALSE(answer.at("allowed").as_bool());
  CHECK(answer.at("reason").as_string() == "blocked-by-allowlist");
  CHECK(answer.at("remedy").as_string() == "allow it with --allow-domain 'evil.test'");
  const std::pair<std::string, std::string> mistakes[] = {
      {"a.test:", "has no port behind its colon"},
      {"a.test:0", "has no port: '0' is none"},
      {"a.test:99999", "has no port: '99999' is none"},
      {"a.test:x", "has no port: 'x' is none"},
      {"a.test:443:1", "has more than one colon"},
      {"https://me@a.test/x", "write the host name alone: 'a.test'"},
      {"a.test/x", "write the host name alone: 'a.test'"},
      {"me@a.test", "has a user name"},
      {"*.a.test", "has a *"},
      {"a b.test", "has a space"},
      {"", "the domain is empty"},
  };
  for (const auto& [word, why] : mistakes) {
    CAPTURE(word);
    const auto bad = s.ccbox(arguments{"check", "domain", word} + s.files());
    CHECK(bad.code == 125);
    CHECK_MESSAGE(contains(bad.err, why), bad.err);
  }
  CHECK(contains(s.ccbox(arguments{"check", "domain", "2001:db8::1"} + s.files()).out, "[2001:db8::1]:443"));
  CHECK(s.ccbox(arguments{"check", "domain", "a.test", "--write"} + s.files()).code == 125);
  CHECK(s.ccbox(arguments{"check", "port", "80"} + s.files()).code == 125);
}

TEST_CASE("without an egress plugin nothing is reachable, and every command says so") {
  scene s;
  s.manifest =
      s.dir.write("bare.yaml", "plugins:\n  - path: bubblewrap.so\n    priority: 100\n  - path: none.so\n");
  CHECK(s.run_in({}, {"true"}).code == 0);
  const auto refused = s.run_in({"--allow-domain", "mine.test"}, {"true"});
  CHECK(refused.code == 125);
  CHECK(contains(refused.err, "no egress plugin is loaded"));
  const auto checked = s.ccbox(arguments{"check", "domain", "llm.test"} + s.files());
  CHECK(checked.code == 1);
  CHECK(contains(checked.out, "no egress plugin is loaded"));
  CHECK(contains(s.ccbox(arguments{"explain"} + s.files()).out, "none: no egress plugin is loaded"));
  CHECK(s.ccbox(arguments{"proxy"} + s.files()).code == 125);
}

TEST_CASE("an egress plugin that cannot be loaded is a warning of run and a failure of doctor") {
  scene s;
  s.manifest = s.dir.write("broken.yaml",
                           "plugins:\n  - path: bubblewrap.so\n    priority: 100\n  - path: none.so\n"
                           "  - path: /nowhere/egress.so\n");
  const auto done = s.run_in({}, {"true"});
  CHECK(done.code == 0);
  CHECK(contains(done.err,
                 "no egress plugin is loaded, so nothing is reachable; '/nowhere/egress.so' was skipped: "));
  CHECK(s.run_in({"--quiet"}, {"true"}).err.empty());
  CHECK_FALSE(contains(s.run_in({"--no-network"}, {"true"}).err, "egress plugin"));
  const auto doctor = s.ccbox(arguments{"doctor", "--json"} + s.files());
  CHECK(doctor.code == 1);
  unsigned failed = 0;
  const auto document = json::parse(doctor.out);
  for (const auto& check : document.at("checks").as_array()) {
    const std::string subject(check.at("subject").as_string());
    if (subject == "network" || subject == "plugin '/nowhere/egress.so'")
      failed += check.at("state") == "fail";
  }
  CHECK(failed == 2);
}

TEST_CASE("explain counts destinations by group, and lists them if asked to") {
  scene s;
  const auto brief = s.ccbox(arguments{"explain", "--allow-domain", "mine.test"} + s.files());
  CHECK(brief.code == 0);
  CHECK(contains(brief.out,
                 "Destinations (action, entries, origin)\n  allow  1  baseline.llm\n  allow  1  "
                 "egressAllowlist\n  deny   1  denied.sinks\n"));
  CHECK(contains(brief.out, "/run/ccbox/bin/net-connect"));
  const auto all = s.ccbox(arguments{"explain", "--all"} + s.files());
  CHECK(contains(all.out, "allow  llm.test   baseline.llm  a model (" + s.rules + ":5)\n"));
  const auto document = json::parse(s.ccbox(arguments{"explain", "--json"} + s.files()).out).as_object();
  const auto& first = document.at("egress").at("rules").at(0);
  CHECK(first.at("pattern").as_string() == "llm.test");
  CHECK(std::string(first.at("where").as_string()) == s.rules + ":5");
  CHECK(document.at("egress").at("networkAllowed").as_bool());
}

TEST_CASE("a file of rules that is named must be there, and right, whatever the command") {
  scene s;
  for (const arguments& command : {arguments{"run"}, {"explain"}, {"wrap"}}) {
    CAPTURE(command[0]);
    const auto with = [&](const std::string& file) {
      return s.ccbox(command + arguments{"--plugins", s.manifest, "--egress-config", file, "--", "true"});
    };
    const auto missing = with(s.dir / "none.yaml");
    CHECK(missing.code == 125);
    CHECK(contains(missing.err, s.dir / "none.yaml"));
    const auto empty = with(s.dir.write("empty.yaml", ""));
    CHECK(empty.code == 125);
    CHECK(contains(empty.err, "empty.yaml: is empty"));
    const auto bad = with(s.dir.write(
        "bad.yaml", "baseline:\n  llm:\n    why: w\n    domains: |\n      \n      llm.test\n" +
                        std::string("github: {}\nticketing: {}\noptional: {}\ndenied: {}\nfloor: {}\n")));
    CHECK(bad.code == 125);
    CHECK(contains(bad.err, "bad.yaml:6: 'llm.test' has no reason"));
  }
}

TEST_CASE("wrap refuses what run refuses, and its argv reads the same files and groups") {
  scene s;
  const arguments words{"wrap", "--ticketing", "linear"};
  const auto bad = s.ccbox(words + s.files() + arguments{"--allow-domain", "a b", "--", "true"});
  CHECK(bad.code == 125);
  CHECK(contains(bad.err, "--allow-domain 'a b'"));
  const auto done = s.ccbox(words + s.files() + arguments{"--", "sh", "-c", "echo $HTTP_PROXY"});
  REQUIRE(done.code == 0);
  const auto document = json::parse(done.out).as_object();
  arguments argv;
  for (const auto& word : document.at("argv").as_array())
    argv.emplace_back(word.as_string());
  run_options options = s.at_work();
  options.env = arguments{};
  for (const auto& [name, value] : document.at("env").as_object())
    options.env->push_back(std::string(name) + "=" + std::string(value.as_string()));
  const auto ran = run(argv, options);
  CHECK(ran.code == 0);
  CHECK(ran.out.starts_with("http://127.0.0.1:"));
  CHECK(contains(s.recorded(), "linear.test"));
}

TEST_CASE("proxy runs one pair until it is told to end, and prints refusals") {
  scene s;
  for (const int number : {SIGTERM, SIGINT}) {
    auto proxy = running::start(
        arguments{ccbox_program(), "proxy", "--allow-domain", "deny-at-open.test", "--github"} + s.files(),
        s.at_work());
    REQUIRE(proxy.wait_for("\n"));
    REQUIRE(proxy.wait_for("{\"http\":"));
    proxy.signal(number);
    const auto done = proxy.wait();
    CHECK(done.code == 0);
    CHECK(done.out == "{\"http\":\"127.0.0.1:3128\",\"socks\":\"127.0.0.1:1080\"}\n");
    CHECK(contains(done.err, "{\"protocol\":\"connect\",\"host\":\"deny-at-open.test\",\"port\":443"));
  }
  CHECK(contains(s.recorded(), "api.git.test"));
  CHECK_FALSE(contains(s.recorded(), "left open"));
}

TEST_CASE("proxy listens where it is told to, on the loopback only") {
  scene s;
  auto proxy = running::start(arguments{ccbox_program(), "proxy", "--listen-http", "127.0.0.1:0",
                                        "--listen-http", "127.0.0.2:0", "--no-network"} +
                                  s.files(),
                              s.at_work());
  REQUIRE(proxy.wait_for("{\"http\":"));
  proxy.signal(SIGTERM);
  CHECK(proxy.wait().code == 0);
  CHECK(contains(s.recorded(), "listener 1 127.0.0.1:"));
  CHECK(contains(s.recorded(), "listener 1 127.0.0.2:"));
  CHECK(contains(s.recorded(), "listener 2 127.0.0.1:"));
  CHECK_FALSE(contains(s.recorded(), "rule 1"));
  for (const std::string word :
       {"0.0.0.0:0", "192.0.2.1:80", "localhost:80", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:65536"}) {
    CAPTURE(word);
    CHECK(s.ccbox(arguments{"proxy", "--listen-socks", word} + s.files()).code == 125);
  }
}

TEST_CASE("plugins lists the egress plugin, and doctor says what the tools of this host make of proxies") {
  scene s;
  const auto listed = s.ccbox(arguments{"plugins", "--json"} + arguments{"--plugins", s.manifest});
  CHECK(contains(listed.out, "\"ccbox.egress/1\""));
  const auto doctor = s.ccbox(arguments{"doctor"} + s.files());
  CHECK(contains(doctor.out, "through the proxies of plugin egress"));
  CHECK(contains(doctor.out, "proxies: curl"));
  CHECK(contains(doctor.out, "proxies: git"));
  CHECK(contains(doctor.out, "git:// has no way through a proxy"));
  CHECK(contains(doctor.out, "refuse ALL_PROXY=socks5h"));
}
