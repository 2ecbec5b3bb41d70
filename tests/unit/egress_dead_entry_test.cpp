// Allow entries which other rules, or what is built in, always refuse.
#include <doctest/doctest.h>

#include "egress_config.hpp"
#include "support/egress_rules.hpp"
#include "support/result_printing.hpp"

using namespace ccbox::test;

namespace {

// The dead entry's pattern and why; empty: none is.
std::string dead(const std::vector<rule>& rules) {
  const auto found = build(rules)->dead_entry();
  return found ? rules[found->index].pattern + ": " + found->why : "";
}

}  // namespace

TEST_CASE("an entry for what the built-in floor refuses is refused by itself") {
  for (const std::string entry : {"169.254.169.254", "169.254.169.254:8080", "[fd00:ec2::254]",
                                  "100.100.100.200", "[64:ff9b::a9fe:a9fe]", "metadata.google.internal",
                                  "METADATA.google.internal.", "metadata:80", "instance-data."}) {
    CAPTURE(entry);
    const auto alone = egress_policy::check(allow(entry));
    CHECK_MESSAGE(contains(alone, "allows nothing: "), alone);
    CHECK_MESSAGE(contains(alone, "(built in)"), alone);
    CHECK_MESSAGE(contains(alone, "leave it out"), alone);
    CHECK(dead({allow("good.test"), allow(entry)}) == entry + ": " + alone);
    CHECK(egress_policy::check(deny(entry)).empty());
  }
  for (const std::string entry : {"127.0.0.1", "127.0.0.1:8080", "[::1]:80", "10.0.0.1", "8.8.8.8",
                                  "*.google.internal", "metadata.google.internal.test", "google.internal"}) {
    CHECK_MESSAGE(egress_policy::check(allow(entry)).empty(), entry);
    CHECK_MESSAGE(dead({allow(entry)}) == "", entry);
  }
}

TEST_CASE("an entry that a deny rule covers is dead, and the sentence names that rule") {
  CHECK(dead({allow("api.sentry.io"), deny("*.sentry.io", "denied.telemetry")}) ==
        "api.sentry.io: allows nothing: the rule *.sentry.io (denied.telemetry) denies it: it is a telemetry "
        "sink; leave it out, or take that rule out: a deny rule wins over every allow rule");
  const std::pair<std::string, std::string> covered[] = {{"a.test", "a.test"},
                                                         {"A.Test.", "a.test"},
                                                         {"a.test:8443", "a.test"},
                                                         {"*.a.test", "*.a.test"},
                                                         {"*.b.a.test", "*.a.test"},
                                                         {"x.*.a.test", "*.a.test"},
                                                         {"x.*.a.test", "x.*.a.test"},
                                                         {"x.y.a.test", "x.*.a.test"},
                                                         {"10.0.0.1:80", "10.0.0.1"},
                                                         {"x.*.b.a.test", "*.a.test"},
                                                         {"[::ffff:10.0.0.1]", "10.0.0.1"},
                                                         {"[64:ff9b::10.0.0.1]:80", "10.0.0.1"}};
  for (const auto& [allowed, denied] : covered) {
    CAPTURE(allowed);
    CHECK(dead({allow(allowed), deny(denied)}).starts_with(allowed + ": allows nothing: the rule " + denied));
    CHECK(dead({deny(denied), allow(allowed)}).starts_with(allowed + ": "));
  }
}

TEST_CASE("an entry of which anything is left is not dead") {
  const std::pair<std::string, std::string> alive[] = {
      {"*.a.test", "x.a.test"},      {"*.a.test", "*.b.a.test"},   {"*.a.test", "a.test"},
      {"*.a.test", "x.*.a.test"},    {"x.*.a.test", "x.y.a.test"}, {"x.*.a.test", "y.*.a.test"},
      {"x.*.a.test", "*.y.a.test"},  {"a.test", "*.a.test"},       {"a.test", "a.test:443"},
      {"a.test:8443", "a.test:443"}, {"10.0.0.1", "10.0.0.1:80"},  {"10.0.0.1", "10.0.0.2"}};
  for (const auto& [allowed, denied] : alive)
    CHECK_MESSAGE(dead({allow(allowed), deny(denied)}) == "", (allowed + " beside " + denied));
}

TEST_CASE("an entry is dead once each of its ports is denied") {
  CHECK(dead({allow("a.test"), deny("a.test:80"), deny("a.test:443")}) != "");
  auto repositories = git("a.test");
  CHECK(dead({repositories, deny("a.test:80"), deny("a.test:443")}) == "");
  CHECK(dead({repositories, deny("a.test:80"), deny("a.test:443"), deny("a.test:22")}) != "");
}

TEST_CASE("an entry within the floor of the configuration is dead") {
  CHECK(dead({allow("10.0.0.1:80"), floor_range("10.0.0.0/8")}) ==
        "10.0.0.1:80: allows nothing: it is among 10.0.0.0/8 (egress.yaml:7), which nothing opens; leave it "
        "out");
  CHECK(dead({allow("11.0.0.1:80"), floor_range("10.0.0.0/8")}) == "");
}

TEST_CASE("a name of this host is dead unless its address is allowed too") {
  CHECK(dead({allow("localhost:8080")}) ==
        "localhost:8080: allows nothing: it is this host, which is opened by its address; write "
        "127.0.0.1:8080 instead, or beside it");
  CHECK(dead({allow("x.localhost")}) != "");
  CHECK(dead({allow("*.x.localhost")}) != "");
  CHECK(dead({allow("localhost:8080"), allow("127.0.0.1:8081")}) != "");
  CHECK(dead({allow("localhost:8080"), allow("127.0.0.1:8080")}) == "");
  CHECK(dead({allow("localhost:8080"), allow("[::1]:8080")}) == "");
  CHECK(dead({allow("localhost:8080"), resolved_range("127.0.0.0/8")}) == "");
  CHECK(dead({allow("localhost:8080"), allow("127.0.0.1:8080"), floor_range("127.0.0.0/8")}) != "");
}

TEST_CASE("no entry of the shipped file is dead, with every group switched on") {
  const auto config = ccbox::load_egress_config(CCBOX_TEST_SOURCE_DIR "/config/egress.yaml");
  REQUIRE(config);
  std::vector<rule> rules;
  const auto add = [&](const std::vector<ccbox::egress_group>& groups, rule_action action) {
    for (const auto& group : groups)
      for (const auto& entry : group.entries)
        rules.push_back({action, entry.pattern, group.origin, entry.reason, group.git_hosts});
  };
  for (const auto* groups : {&config->baseline, &config->github, &config->ticketing, &config->optional})
    add(*groups, rule_action::allow);
  add(config->denied, rule_action::deny);
  add(config->floor, rule_action::floor);
  CHECK(rules.size() > 200);
  CHECK(dead(rules) == "");
}
