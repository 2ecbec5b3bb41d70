// The proxy pair of a session, with an egress plugin that proxies nothing and records what it is given.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "session.hpp"
#include "support/booted.hpp"
#include "support/event_loop.hpp"
#include "support/os_faults.hpp"
#include "support/result_printing.hpp"
#include "support/run_command.hpp"
#include "support/sanitizer.hpp"
#include "support/temporary_directory.hpp"
#include "support/waiting.hpp"

using namespace ccbox;

namespace {

std::string manifest_with(const std::string& record, const std::string& misbehave = {}) {
  std::string text = "plugins:\n  - path: bubblewrap.so\n    priority: 100\n  - path: none.so\n";
  if (record.empty()) return text;
  text += "  - path: " CCBOX_TEST_BINARY_DIR "/tests/plugins/fake_egress.so\n    options: {record: " + record;
  if (!misbehave.empty()) text += ", misbehave: " + misbehave;
  return text + "}\n";
}

struct fixture {
  test::event_loop loop;
  test::temporary_directory dir;
  std::string record = dir / "record";
  std::string work = dir.path() + "/work";
  test::booted boot;
  event_bus bus;
  std::unique_ptr<sandbox_port> port;
  test::recorder seen{bus, loop.executor()};

  explicit fixture(const std::string& manifest = {})
      : boot(manifest.empty() ? manifest_with(record) : manifest) {
    boot.egress() = parse_egress_config(
                        "baseline:\n  llm:\n    why: w\n    domains: |\n      llm.test a model\ngithub: {}\n"
                        "ticketing: {}\noptional: {}\ndenied: {}\nfloor: {}\nsettings: {sni: log}\n",
                        "e.yaml")
                        .value();
    dir.write("work/x", "");
    open();
  }
  void open() { port = std::make_unique<sandbox_port>(loop.executor(), boot.context(), bus); }

  sandbox_spec spec(const std::string& backend = "bubblewrap") { return test::spec_for("s1", backend, work); }
  std::shared_ptr<session> launch(sandbox_spec wanted) {
    auto s = loop.run(port->launch(std::move(wanted)));
    REQUIRE_MESSAGE(s, s.error().what);
    return *s;
  }
  std::string output(session& s, const std::string& script,
                     std::vector<std::pair<std::string, std::string>> env = {}) {
    exec_request r;
    r.argv = {"sh", "-c", script};
    r.extra_env = std::move(env);
    auto e = loop.run(s.exec(std::move(r)));
    REQUIRE_MESSAGE(e, e.error().what);
    REQUIRE(loop.run(s.wait(e->exec_id)));
    loop.run(seen.subscription().drained());
    return seen.output(e->exec_id);
  }
  std::string recorded() const { return test::read_file(record); }
  std::size_t violations(const std::string& target) const {
    std::size_t count = 0;
    for (const auto& event : seen.events())
      count += event.violation && event.violation->target == target;
    return count;
  }
};

// The addresses that the plugin was given for one kind.
std::vector<std::string> listeners(const std::string& record, const std::string& kind) {
  std::vector<std::string> out;
  std::istringstream lines(record);
  const std::string prefix = "listener " + kind + " ";
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(prefix)) out.push_back(line.substr(prefix.size()));
  return out;
}

}  // namespace

TEST_CASE_FIXTURE(fixture, "a session's commands find the pair that listens in their own namespace") {
  auto s = launch(spec());
  const auto http = listeners(recorded(), "1"), socks = listeners(recorded(), "2");
  REQUIRE_FALSE(http.empty());
  REQUIRE(http.size() == socks.size());
  CHECK(http[0].starts_with("127.0.0.1:"));
  CHECK(socks[0].starts_with("127.0.0.1:"));
  CHECK(http[0] != socks[0]);
  if (http.size() > 1) CHECK(http[1] == "[::1]" + http[0].substr(http[0].find(':')));
  CHECK(recorded().find("rule 1 0 llm.test|baseline.llm|a model\n") != std::string::npos);
  CHECK(recorded().find("option sni=log\n") != std::string::npos);
  CHECK(recorded().find("net_connect /run/ccbox/bin/net-connect\n") != std::string::npos);

  CHECK(output(*s, "echo $HTTP_PROXY") == "http://" + http[0] + "\n");
  CHECK(output(*s, test::no_leak_search + " /run/ccbox/bin/net-connect 2>&1") ==
        "/run/ccbox/bin/net-connect: usage: net-connect [--proxy "
        "IP:PORT] HOST PORT\n");
  const auto details = s->handle().details;
  CHECK(details.at("proxy.http") == http[0]);
  CHECK(details.at("proxy.socks") == socks[0]);
  CHECK(details.at("network") == "1 destinations allowed");

  CHECK(recorded().find("close") == std::string::npos);
  loop.run(s->destroy());
  CHECK(recorded().ends_with("close s1\n"));
}

TEST_CASE_FIXTURE(fixture, "with the network off the pair is there and nothing is allowed") {
  auto wanted = spec();
  wanted.network_enabled = false;
  wanted.egress_allowlist = {"mine.test"};
  auto s = launch(wanted);
  CHECK(recorded().find("open s1\n") != std::string::npos);
  CHECK(recorded().find("rule 1") == std::string::npos);
  CHECK(s->handle().details.at("network") == "every destination refused");
  CHECK(output(*s, "echo $HTTP_PROXY").starts_with("http://127.0.0.1:"));
}

TEST_CASE_FIXTURE(fixture, "what the plugin appends goes behind what is there, a command's own value too") {
  auto s = launch(spec());
  CHECK(output(*s, "echo $JAVA_TOOL_OPTIONS") == "-Dhttp.proxyHost=127.0.0.1\n");
  CHECK(output(*s, "echo $JAVA_TOOL_OPTIONS", {{"JAVA_TOOL_OPTIONS", "-Xmx1g"}}) ==
        "-Xmx1g -Dhttp.proxyHost=127.0.0.1\n");
  CHECK(output(*s, "echo $HTTP_PROXY", {{"HTTP_PROXY", "mine"}}) == "mine\n");
}

TEST_CASE_FIXTURE(fixture, "denials are violation events of their session, in order with all others") {
  auto wanted = spec();
  wanted.egress_allowlist = {"deny-at-open.test", "deny-at-close.test"};
  auto s = launch(wanted);
  CHECK(output(*s, "echo hello") == "hello\n");
  loop.run(s->destroy());
  loop.run(seen.subscription().drained());
  CHECK(violations("deny-at-open.test:443") == 1);
  CHECK(violations("deny-at-close.test:443") == 1);
  const auto events = seen.events();
  for (std::size_t i = 0; i < events.size(); ++i) {
    CHECK(events[i].sequence == i + 1);
    CHECK(events[i].session_id == "s1");
  }
  const auto denied = std::find_if(events.begin(), events.end(), [](const auto& e) { return !!e.violation; });
  CHECK(denied->violation->action == "network-outbound");
  CHECK(denied->violation->raw->find("\"reason\":\"blocked-by-allowlist\"") != std::string::npos);
}

TEST_CASE_FIXTURE(
    fixture,
    "of a flood every denial is an event or was refused to the plugin, and the last event is the end") {
  auto wanted = spec();
  wanted.egress_allowlist = {"deny-many.test"};
  auto s = launch(wanted);
  exec_request sleeper;
  sleeper.argv = {"sleep", "1000"};
  REQUIRE(loop.run(s->exec(std::move(sleeper))));
  loop.run(s->destroy(0));
  loop.run(seen.subscription().drained());
  std::size_t refused = 0;
  std::istringstream lines(recorded());
  for (std::string line; std::getline(lines, line);)
    refused += line.starts_with("emit refused");
  CHECK(seen.count(sandbox_event_type::violation) + refused == 3000);
  CHECK(seen.count(sandbox_event_type::violation) >= 1000);
  CHECK(seen.events().back().type == sandbox_event_type::killed);
}

TEST_CASE_FIXTURE(fixture, "a destination that is no domain is refused before anything starts") {
  auto wanted = spec();
  wanted.egress_allowlist = {"good.test", "not good.test"};
  const auto refused = loop.run(port->launch(wanted));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == error_code::invalid_argument);
  CHECK(refused.error().what == "egressAllowlist[1]: 'not good.test': has a space; leave it out");
  CHECK(recorded().empty());
  CHECK(seen.events().empty());
}

TEST_CASE(
    "without an egress plugin a spec that names destinations is refused, and any other reaches nothing") {
  fixture f{manifest_with("")};
  auto wanted = f.spec();
  wanted.egress_allowlist = {"mine.test"};
  const auto refused = f.loop.run(f.port->launch(wanted));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == error_code::unavailable);
  CHECK(refused.error().what == "egressAllowlist names destinations, and no egress plugin is loaded");
  CHECK(refused.error().hint.find("--without net_proxy_only") != std::string::npos);

  auto s = f.launch(f.spec());
  CHECK(f.output(*s, "echo \"[$HTTP_PROXY]\"; grep -c : /proc/net/dev").starts_with("[]\n1\n"));
  f.loop.run(s->destroy());

  wanted.without.push_back("net_proxy_only");
  auto open = f.launch(wanted);
  const auto& warnings = open->rules().warnings;
  CHECK(std::any_of(warnings.begin(), warnings.end(), [](const std::string& w) {
    return w.find("egressAllowlist has no effect") != std::string::npos;
  }));
}

TEST_CASE_FIXTURE(fixture, "with the host's network there is no pair") {
  auto wanted = spec();
  wanted.without.push_back("net_proxy_only");
  auto s = launch(wanted);
  CHECK(recorded().find("open") == std::string::npos);
  CHECK(output(*s, "ls /run/ccbox/bin 2>&1").find("No such file") != std::string::npos);
}

TEST_CASE_FIXTURE(fixture,
                  "backend none has a pair on the host's loopback for who asks for one, and none otherwise") {
  auto s = launch(spec("none"));
  CHECK(recorded().find("open") == std::string::npos);
  loop.run(s->destroy());
  auto wanted = spec("none");
  wanted.egress_allowlist = {"mine.test"};
  s = launch(wanted);
  CHECK(listeners(recorded(), "1").empty());
  CHECK(recorded().find("net_connect " + boot.context().egress.net_connect + "\n") != std::string::npos);
  CHECK(output(*s, "echo $HTTP_PROXY") == "http://127.0.0.1:3128\n");
}

TEST_CASE("a pair that does not open is a launch that fails, and leaves nothing behind") {
  test::temporary_directory records;
  for (const std::string how : {"refuse", "no-socks", "bad-value"}) {
    CAPTURE(how);
    const std::string record = records / how;
    fixture f{manifest_with(record, how)};
    f.loop.settle();
    const auto before = test::take_footprint();
    const auto refused = f.loop.run(f.port->launch(f.spec()));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().what.find("egress plugin 'egress'") != std::string::npos);
    CHECK(f.port->find("s1")->handle().state == sandbox_state::error);
    f.loop.settle();
    CHECK(test::take_footprint() == before);
    CHECK((test::read_file(record).find("close s1") != std::string::npos) == (how != "refuse"));
  }
}

TEST_CASE_FIXTURE(fixture,
                  "a session that is let go of closes its pair, even if its executor never runs again") {
  launch(spec());
  port.reset();
  CHECK(recorded().ends_with("close s1\n"));
}

TEST_CASE_FIXTURE(fixture, "when the enclosure ends by itself its pair is closed") {
  auto s = launch(spec());
  ::kill(std::stoi(s->handle().details.at("pid")), SIGKILL);
  REQUIRE(test::eventually([&] {
    loop.settle();
    return recorded().ends_with("close s1\n");
  }));
}

TEST_CASE_FIXTURE(fixture, "the socat bridge gives the plugin Unix sockets under the addresses inside") {
  boot.egress().bridge = egress_bridge::socat;
  open();
  auto s = launch(spec());
  CHECK(s->handle().details.at("proxy.bridge") == "socat");
  const auto http = listeners(recorded(), "1");
  REQUIRE_FALSE(http.empty());
  CHECK(output(*s, "echo $HTTP_PROXY") == "http://" + http[0] + "\n");
  // It is accepted by socat, whether or not a proxy is behind it.
  CHECK(output(*s, "bash -c 'exec 5<>/dev/tcp/127.0.0.1/" + http[0].substr(http[0].find(':') + 1) +
                       "' && echo connected") == "connected\n");
  loop.run(s->destroy());
}
