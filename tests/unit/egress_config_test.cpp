#include "egress_config.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "log.hpp"
#include "registry.hpp"
#include "support/result_printing.hpp"
#include "support/temporary_directory.hpp"

using namespace ccbox;

namespace {

const std::string smallest = "baseline: {}\ngithub: {}\nticketing: {}\noptional: {}\ndenied: {}\nfloor: {}\n";

std::string with_baseline(const std::string& group) {
  return "baseline:\n" + group + "github: {}\nticketing: {}\noptional: {}\ndenied: {}\nfloor: {}\n";
}

egress_config parsed(const std::string& text) {
  auto config = parse_egress_config(text, "e.yaml");
  REQUIRE_MESSAGE(config, config.error().what);
  return std::move(*config);
}

void check_refused(const std::string& text, const std::string& what) {
  CAPTURE(text);
  const auto config = parse_egress_config(text, "e.yaml");
  REQUIRE_FALSE(config);
  CHECK(config.error().code == error_code::invalid_argument);
  CHECK(config.error().what.find(what) != std::string::npos);
  CAPTURE(config.error().what);
  CHECK(config.error().what.starts_with("e.yaml:"));
}

egress_config shipped() {
  auto config = load_egress_config(CCBOX_TEST_SOURCE_DIR "/config/egress.yaml");
  REQUIRE_MESSAGE(config, config.error().what);
  return std::move(*config);
}

bool has(const std::vector<egress_group>& groups, std::string_view pattern) {
  for (const auto& group : groups)
    for (const auto& entry : group.entries)
      if (entry.pattern == pattern) return true;
  return false;
}

}  // namespace

TEST_CASE("an entry is a pattern and its reason, with the line that it stands on") {
  const auto config =
      parsed(with_baseline("  llm:\n    why: models\n    domains: |\n"
                           "      api.test   the API, of  them all \n"
                           "\n"
                           "      # a comment\n"
                           "      *.x.test:8443\tanother\n"
                           "  git:\n    why: git\n    git_hosts: true\n    domains: |\n"
                           "      git.test  repositories\n"));
  REQUIRE(config.baseline.size() == 2);
  const auto& llm = config.baseline[0];
  CHECK(llm.name == "llm");
  CHECK(llm.origin == "baseline.llm");
  CHECK(llm.why == "models");
  CHECK_FALSE(llm.git_hosts);
  REQUIRE(llm.entries.size() == 2);
  CHECK(llm.entries[0].pattern == "api.test");
  CHECK(llm.entries[0].reason == "the API, of  them all");
  CHECK(llm.entries[0].line == 5);
  CHECK(llm.entries[1].pattern == "*.x.test:8443");
  CHECK(llm.entries[1].reason == "another");
  CHECK(config.where(llm.entries[1]) == "e.yaml:8");
  CHECK(config.baseline[1].git_hosts);
  const auto rule = to_rule(config, config.baseline[1], config.baseline[1].entries[0], egress_action::allow);
  CHECK(rule ==
        egress_rule{egress_action::allow, true, "git.test", "baseline.git", "repositories", "e.yaml:13"});
}

TEST_CASE("what allows nothing must say so: an empty file and a missing section are errors") {
  CHECK(parsed(smallest).baseline.empty());
  for (const std::string text : {"", "\n", "# nothing\n", "---\n"}) {
    CAPTURE(text);
    const auto config = parse_egress_config(text, "e.yaml");
    REQUIRE_FALSE(config);
    CHECK(config.error().what == "e.yaml: is empty");
  }
  for (const std::string section : {"baseline", "github", "ticketing", "optional", "denied", "floor"}) {
    std::string text = smallest;
    text.erase(text.find(section + ": {}\n"), section.size() + 5);
    check_refused(text, "missing section '" + section + "'");
  }
}

TEST_CASE("a file that is named and cannot be read is an error that names it") {
  const test::temporary_directory directory;
  const auto missing = load_egress_config(directory / "none.yaml");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == error_code::not_found);
  CHECK(missing.error().what.find(directory / "none.yaml") != std::string::npos);
  CHECK_FALSE(load_egress_config(directory.path()));
  const auto empty = load_egress_config(directory.write("empty.yaml", ""));
  REQUIRE_FALSE(empty);
  CHECK(empty.error().what.find("is empty") != std::string::npos);
}

TEST_CASE("unknown keys are errors at every level") {
  check_refused(smallest + "allowed: {}\n", "unknown key 'allowed'");
  check_refused(smallest + "settings: {snj: off}\n", "unknown key 'snj'");
  check_refused(smallest + "settings: {limits: {max_tunnel: 1}}\n", "unknown key 'max_tunnel'");
  check_refused(with_baseline("  llm:\n    why: x\n    hosts: |\n      a.test b\n"), "unknown key 'hosts'");
  check_refused("baseline: {}\nbaseline: {}\n", "duplicate key 'baseline'");
}

TEST_CASE("an entry without a reason, one listed twice, and a group without what it needs are errors") {
  const auto group = [](const std::string& lines) {
    return with_baseline("  llm:\n    why: x\n    domains: |\n" + lines);
  };
  check_refused(group("      a.test\n"), "e.yaml:5: 'a.test' has no reason");
  for (const auto* same : {"A.Test", "a.test."})
    check_refused(group("      a.test one\n      " + std::string(same) + " two\n"),
                  "e.yaml:6: a second entry for '" + std::string(same) + "', first at line 5");
  check_refused(group("      a.test:443 one\n      a.test.:443 two\n"), "e.yaml:6: a second entry for");
  check_refused(group("      a.test one\n      git hub.com  repositories\n"),
                "e.yaml:6: 'git' is a name without a dot");
  CHECK(parsed(group("      git:443 ours\n      wiki. ours\n")).baseline[0].entries.size() == 2);
  check_refused(group("      a.test one\n      a.test two\n"),
                "e.yaml:6: a second entry for 'a.test', first at line 5");
  check_refused(with_baseline("  llm:\n    domains: |\n      a.test b\n"), "group 'llm' has no 'why'");
  check_refused(with_baseline("  llm:\n    why: ' '\n    domains: |\n      a.test b\n"),
                "group 'llm' has no 'why'");
  check_refused(with_baseline("  llm:\n    why: x\n"), "group 'llm' has no 'domains'");
  check_refused(with_baseline("  'l m':\n    why: x\n    domains: |\n      a.test b\n"),
                "the group's name 'l m'");
  check_refused(with_baseline("  llm: []\n"), "expected a mapping");
}

TEST_CASE("entries that are no literal block are refused, because their lines would be wrong") {
  check_refused(with_baseline("  llm:\n    why: x\n    domains: a.test b\n"), "are no literal block");
  check_refused(with_baseline("  llm:\n    why: x\n    domains: >\n      a.test b\n      c.test d\n"),
                "are no literal block");
  check_refused(with_baseline("  llm:\n    why: x\n    domains: \"a.test b\\nc.test d\"\n"),
                "are no literal block");
  check_refused(with_baseline("  llm:\n    why: x\n    domains: [a.test]\n"), "expected a text");
}

TEST_CASE("optional groups are off until they are enabled by name") {
  std::string text = smallest;
  text.replace(text.find("optional: {}"), 12,
               "optional:\n  images:\n    why: x\n    domains: |\n      i.test images");
  CHECK_FALSE(parsed(text).optional[0].enabled);
  CHECK(parsed(text + "enable: [images]\n").optional[0].enabled);
  check_refused(text + "enable: [pictures]\n", "there is no optional group 'pictures'");
  check_refused(text + "enable: images\n", "expected a list");
}

TEST_CASE("settings become the session's options; what is not set stays the plugin's") {
  CHECK(parsed(smallest).options.empty());
  CHECK(parsed(smallest).bridge == egress_bridge::direct);
  const auto config = parsed(smallest +
                             "settings:\n  all_proxy: http\n  sni: log\n  bridge: socat\n"
                             "  upstream: http://proxy.test:3128\n  upstream_credentials_file: /etc/creds\n"
                             "  allowed_resolved_ranges: |\n    198.18.0.0/15 made-up addresses\n"
                             "  limits: {max_tunnels: 7, idle_timeout_ms: 1000}\n");
  using option = std::pair<std::string, std::string>;
  CHECK(config.options == std::vector<option>{{"all_proxy", "http"},
                                              {"sni", "log"},
                                              {"upstream", "http://proxy.test:3128"},
                                              {"upstream_credentials_file", "/etc/creds"},
                                              {"max_tunnels", "7"},
                                              {"idle_timeout_ms", "1000"}});
  CHECK(config.bridge == egress_bridge::socat);
  REQUIRE(config.resolved_ranges.size() == 1);
  CHECK(config.resolved_ranges[0].pattern == "198.18.0.0/15");
}

TEST_CASE("settings that make no sense are errors") {
  for (const auto& [line, what] :
       {std::pair{"all_proxy: socks5", "there is no choice 'socks5'"},
        {"sni: on", "there is no choice 'on'"},
        {"bridge: nc", "there is no choice 'nc'"},
        {"upstream: proxy.test:3128", "is no http://HOST:PORT"},
        {"upstream: 'http://u:p@proxy.test:3128'", "has a user name or password in it"},
        {"upstream_credentials_file: creds", "is no absolute path"},
        {"limits: {max_tunnels: 0}", "must be between 1 and"},
        {"limits: {max_tunnels: 65537}", "must be between 1 and 65536"},
        {"limits: {connect_timeout_ms: 604800001}", "must be between 1 and 604800000"},
        {"limits: {max_tunnels: -1}", "must be between 1 and"},
        {"limits: {max_tunnels: many}", "expected a whole number"},
        {"allowed_resolved_ranges: 10.0.0.0/8 x", "are no literal block"}})
    check_refused(smallest + "settings:\n  " + line + "\n", what);
}

TEST_CASE("the first entry that the plugin refuses is the error, with its line") {
  set_log_level("off");
  manifest m;
  m.plugins.emplace_back().path = CCBOX_TEST_BINARY_DIR "/tests/plugins/fake_egress.so";
  const auto plugins = registry::build(m, CCBOX_PROBE_QUICK);
  REQUIRE(plugins);
  const auto config = shipped();
  CHECK(check_entries(config, *(*plugins)->find_egress()));
  // The groups that no session uses at the moment are asked about too.
  for (const auto section : {&egress_config::baseline, &egress_config::github, &egress_config::ticketing,
                             &egress_config::optional, &egress_config::denied, &egress_config::floor}) {
    auto broken = config;
    auto& entry = (broken.*section).back().entries.back();
    entry.pattern = "a b";
    const auto fine = check_entries(broken, *(*plugins)->find_egress());
    REQUIRE_FALSE(fine);
    CHECK(fine.error().what.find(":" + std::to_string(entry.line) + ": 'a b': has a space") !=
          std::string::npos);
  }
  set_log_level(log_level::info);
}

TEST_CASE("the shipped file names what the specification names") {
  const auto config = shipped();
  for (const auto pattern :
       {"api.anthropic.com", "api.openai.com", "bedrock.*.amazonaws.com", "models.dev", "github.com",
        "gitlab.com", "*.npmjs.org", "pypi.org", "crates.io", "*.debian.org"})
    CHECK_MESSAGE(has(config.baseline, pattern), pattern);
  for (const auto pattern : {"metadata.google.internal", "*.statsig.com", "*.sentry.io",
                             "copilot-telemetry.githubusercontent.com"})
    CHECK_MESSAGE(has(config.denied, pattern), pattern);
  for (const auto range : {"169.254.0.0/16", "100.100.100.200", "168.63.129.16", "fd00:ec2::/32"})
    CHECK_MESSAGE(has(config.floor, range), range);
  CHECK(has(config.github, "*.github.com"));
  CHECK_FALSE(has(config.baseline, "api.github.com"));
  CHECK_FALSE(has(config.baseline, "*.github.com"));
  CHECK(
      std::none_of(config.optional.begin(), config.optional.end(), [](const auto& g) { return g.enabled; }));
  CHECK(config.bridge == egress_bridge::direct);
}

TEST_CASE("in the shipped file every group and every entry says why, and only git hosts are git hosts") {
  const auto config = shipped();
  for (const auto* groups : {&config.baseline, &config.github, &config.ticketing, &config.optional,
                             &config.denied, &config.floor}) {
    CHECK_FALSE(groups->empty());
    std::set<std::string> seen;
    for (const auto& group : *groups) {
      CAPTURE(group.name);
      CHECK_FALSE(group.entries.empty());
      CHECK_FALSE(group.why.empty());
      CHECK(group.git_hosts == (group.origin == "baseline.git"));
      for (const auto& entry : group.entries) {
        CAPTURE(entry.pattern);
        CHECK(entry.reason.size() >= 3);
        CHECK(seen.insert(entry.pattern).second);
      }
    }
  }
}

// Hosts where anybody can leave data under a name of their own.
TEST_CASE("no place where anybody can leave data is in the shipped baseline") {
  const auto config = shipped();
  const std::string_view suffixes[] = {"storage.googleapis.com",
                                       ".blob.core.windows.net",
                                       ".cloudfront.net",
                                       ".s3.amazonaws.com",
                                       ".github.io",
                                       ".gitlab.io",
                                       ".sourceforge.net",
                                       ".jsdelivr.net",
                                       "unpkg.com",
                                       "gist.github.com",
                                       "uploads.github.com",
                                       "api.github.com",
                                       ".r2.dev",
                                       ".workers.dev",
                                       ".pages.dev",
                                       ".vercel.app",
                                       ".netlify.app",
                                       ".herokuapp.com",
                                       ".azurewebsites.net",
                                       ".openai.azure.com",
                                       ".ngrok.io",
                                       "pastebin.com",
                                       "transfer.sh",
                                       "huggingface.co",
                                       "ghcr.io",
                                       "docker.io",
                                       "quay.io"};
  const std::set<std::string> wholesale = {
      "*.googleapis.com", "*.amazonaws.com", "*.azure.com",     "*.github.com",     "*.githubusercontent.com",
      "*.windows.net",    "*.google.com",    "*.microsoft.com", "*.cloudflare.com", "*.gitlab.com"};
  const std::set<std::string> fine = {"router.huggingface.co"};  // inference alone
  for (const auto& group : config.baseline) {
    for (const auto& entry : group.entries) {
      CAPTURE(entry.pattern);
      CHECK_FALSE(wholesale.contains(entry.pattern));
      for (const auto suffix : suffixes)
        CHECK((fine.contains(entry.pattern) || !entry.pattern.ends_with(suffix)));
    }
  }
}
