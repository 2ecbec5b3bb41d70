#include "egress.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "log.hpp"
#include "registry.hpp"
#include "support/result_printing.hpp"
#include "support/temporary_directory.hpp"

using namespace ccbox;

namespace {

// The fake egress plugin, loaded as any other; what it recorded.
struct scene {
  test::temporary_directory directory;
  std::string record = directory / "record";
  std::unique_ptr<registry> plugins;

  explicit scene(const std::string& misbehave = {}) {
    set_log_level("off");
    manifest m;
    manifest_entry entry;
    entry.path = CCBOX_TEST_BINARY_DIR "/tests/plugins/fake_egress.so";
    entry.options = {{"record", record}};
    if (!misbehave.empty()) entry.options.emplace_back("misbehave", misbehave);
    m.plugins.push_back(entry);
    auto made = registry::build(m, CCBOX_PROBE_QUICK);
    REQUIRE(made);
    plugins = std::move(*made);
  }
  ~scene() {
    plugins.reset();
    set_log_level(log_level::info);
  }

  const egress_plugin& plugin() const {
    const auto* found = plugins->find_egress();
    REQUIRE(found);
    return *found;
  }
  std::string recorded() const {
    std::ifstream file(record);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
};

const std::vector<egress_rule> some_rules{
    {egress_action::allow, true, "git.test", "baseline.git", "repositories", "egress.yaml:12"},
    {egress_action::allow, false, "*.test:8443", "egressAllowlist", "asked for by the spec", ""},
    {egress_action::deny, false, "bad.test", "denied.telemetry", "telemetry", "egress.yaml:99"},
    {egress_action::floor, false, "192.0.2.0/24", "floor.metadata", "metadata", "egress.yaml:120"},
    {egress_action::resolved, false, "198.18.0.0/15", "settings", "made-up addresses", "egress.yaml:7"}};

egress_request request_for(const std::string& session) {
  egress_request request;
  request.session_id = session;
  request.rules = some_rules;
  return request;
}

}  // namespace

TEST_CASE("a pair is opened with every rule, option, listener and path, word by word") {
  scene s;
  auto request = request_for("s1");
  request.options = {{"sni", "enforce"}, {"max_tunnels", "256"}};
  request.listeners = {{CCBOX_LISTENER_HTTP, 0, "127.0.0.1:4001"}, {CCBOX_LISTENER_SOCKS, 0, "[::1]:4002"}};
  request.net_connect = "/run/ccbox/bin/net-connect";
  auto pair = s.plugin().open(request);
  REQUIRE_MESSAGE(pair, pair.error().what);
  CHECK(s.recorded() ==
        "open s1\n"
        "rule 1 1 git.test|baseline.git|repositories\n"
        "rule 1 0 *.test:8443|egressAllowlist|asked for by the spec\n"
        "rule 2 0 bad.test|denied.telemetry|telemetry\n"
        "rule 3 0 192.0.2.0/24|floor.metadata|metadata\n"
        "rule 4 0 198.18.0.0/15|settings|made-up addresses\n"
        "option sni=enforce\n"
        "option max_tunnels=256\n"
        "listener 1 127.0.0.1:4001\n"
        "listener 2 [::1]:4002\n"
        "net_connect /run/ccbox/bin/net-connect\n");
  CHECK((*pair)->endpoint(CCBOX_LISTENER_HTTP) == "127.0.0.1:4001");
  CHECK((*pair)->endpoint(CCBOX_LISTENER_SOCKS) == "[::1]:4002");
  const auto& variables = (*pair)->environment();
  REQUIRE(variables.size() == 2);
  CHECK(variables[0].name == "HTTP_PROXY");
  CHECK(variables[0].value == "http://127.0.0.1:4001");
  CHECK_FALSE(variables[0].append);
  CHECK(variables[1].name == "JAVA_TOOL_OPTIONS");
  CHECK(variables[1].append);
}

TEST_CASE("a pair ends with its handle, and once") {
  scene s;
  {
    auto pair = s.plugin().open(request_for("s1"));
    REQUIRE(pair);
    CHECK(s.recorded().find("close") == std::string::npos);
    (*pair)->close();
    CHECK(s.recorded().ends_with("close s1\n"));
    (*pair)->close();
    const auto late = (*pair)->decide("git.test", 443);
    REQUIRE_FALSE(late);
    CHECK(late.error().code == error_code::illegal_state);
  }
  CHECK(s.recorded().find("close again") == std::string::npos);
  { REQUIRE(s.plugin().open(request_for("s1"))); }
  CHECK(s.recorded().ends_with("close s1\n"));
}

TEST_CASE("a session id in use is refused and leaves the pair that has it alone") {
  scene s;
  auto first = s.plugin().open(request_for("s1"));
  REQUIRE(first);
  const auto second = s.plugin().open(request_for("s1"));
  REQUIRE_FALSE(second);
  CHECK(second.error().code == error_code::invalid_argument);
  CHECK(second.error().what == "egress plugin 'egress': the session id is in use");
  CHECK((*first)->decide("git.test", 443)->allowed);
}

TEST_CASE("a decision has its reason, rule and text") {
  scene s;
  const auto pair = s.plugin().open(request_for("s1"));
  REQUIRE(pair);
  const auto allowed = (*pair)->decide("git.test", 443);
  REQUIRE(allowed);
  CHECK(allowed->allowed);
  CHECK(allowed->rule == "the rule");
  CHECK(allowed->reason.empty());
  const auto refused = (*pair)->decide("evil.test", 443);
  REQUIRE(refused);
  CHECK_FALSE(refused->allowed);
  CHECK(refused->reason == "blocked-by-allowlist");
  CHECK(refused->text == "no rule allows it; add --allow-domain");
}

TEST_CASE("a rule that the plugin does not take is an error that says where it was written") {
  scene s;
  CHECK(s.plugin().check_rule(some_rules[0]));
  auto bad = some_rules[0];
  bad.pattern = "a b.test";
  const auto refused = s.plugin().check_rule(bad);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == error_code::invalid_argument);
  CHECK(refused.error().what == "egress.yaml:12: 'a b.test': has a space; leave it out");
  bad.where.clear();
  CHECK(s.plugin().check_rule(bad).error().what == "baseline.git: 'a b.test': has a space; leave it out");
}

TEST_CASE("a rule that the plugin does not take beside the others is told by where it was written") {
  scene s("bad-rule");
  const auto refused = s.plugin().open(request_for("s1"));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == error_code::invalid_argument);
  CHECK(refused.error().what == "egress.yaml:12: 'git.test': allows nothing: it is denied");
  auto other = request_for("s2");
  other.rules = {};
  CHECK(s.plugin().open(other).error().what ==
        "egress plugin 'egress': baseline.git: 'git.test': allows nothing: it is denied");
}

TEST_CASE("counters come with name, labels and value") {
  scene s;
  std::string text;
  s.plugin().counters([&](std::string_view name, std::string_view labels, double value) {
    text +=
        std::string(name) + "{" + std::string(labels) + "} " + std::to_string(static_cast<int>(value)) + "\n";
  });
  CHECK(text == "ccbox_egress_denied_total{reason=\"port\"} 3\n");
}

TEST_CASE("what a plugin may not answer is an error that names it, and the pair is closed again") {
  struct expected {
    const char* how;
    error_code code;
    const char* what;
  };
  for (const auto& [how, code, what] :
       {expected{"no-socks", error_code::failed, "it names no SOCKS endpoint"},
        {"bad-endpoint", error_code::failed, "its endpoint 'localhost:80' is no ip:port"},
        {"bad-kind", error_code::failed, "it names an endpoint of an unknown kind"},
        {"many-endpoints", error_code::failed, "it names too many endpoints"},
        {"many-variables", error_code::failed, "it sets too many variables"},
        {"bad-name", error_code::failed, "'A=B' is no name of a variable"},
        {"bad-value", error_code::failed, "the value of its variable A cannot be one"},
        {"long-value", error_code::failed, "the value of its variable A cannot be one"},
        {"bad-flag", error_code::failed, "its variable A has a flag that is unknown here"},
        {"refuse", error_code::unavailable, "no proxies today"},
        {"silent-refuse", error_code::failed, "open failed with status 4 and no reason"},
        {"overrun", error_code::failed, "egress plugin 'egress'"}}) {
    CAPTURE(how);
    scene s(how);
    const auto pair = s.plugin().open(request_for("s1"));
    REQUIRE_FALSE(pair);
    CHECK(pair.error().code == code);
    CHECK(pair.error().what.find(what) != std::string::npos);
    CHECK(pair.error().what.find("egress plugin 'egress'") == 0);
    const bool opened = std::string(how).find("refuse") == std::string::npos && std::string(how) != "overrun";
    CHECK((s.recorded().find("close s1") != std::string::npos) == opened);
  }
}
