#include "egress_resolver.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "support/result_printing.hpp"

using namespace ccbox;

namespace {

egress_config small_config() {
  auto config = parse_egress_config(
      "settings: {sni: log, bridge: socat, allowed_resolved_ranges: }\n"
      "enable: [images]\n"
      "baseline:\n  llm:\n    why: w\n    domains: |\n      llm.test a model\n"
      "  git:\n    why: w\n    git_hosts: true\n    domains: |\n      git.test repositories\n"
      "github:\n  api:\n    why: w\n    domains: |\n      api.git.test API\n"
      "ticketing:\n  linear:\n    why: w\n    domains: |\n      linear.test tickets\n"
      "  jira:\n    why: w\n    domains: |\n      jira.test tickets\n"
      "optional:\n  images:\n    why: w\n    domains: |\n      images.test images\n"
      "  pki:\n    why: w\n    domains: |\n      pki.test:80 lists\n"
      "denied:\n  telemetry:\n    why: w\n    domains: |\n      sink.test telemetry\n"
      "floor:\n  metadata:\n    why: w\n    addresses: |\n      192.0.2.0/24 metadata\n",
      "e.yaml");
  REQUIRE_MESSAGE(config, config.error().what);
  return std::move(*config);
}

const egress_config& config() {
  static const egress_config made = small_config();
  return made;
}

sandbox_spec plain() {
  sandbox_spec spec;
  spec.session_id = "s";
  return spec;
}

resolved_egress resolved(const sandbox_spec& spec, std::vector<std::string> ticketing = {}) {
  auto made = resolve_egress(spec, {&config(), std::move(ticketing), {}});
  REQUIRE_MESSAGE(made, made.error().what);
  return std::move(*made);
}

std::string allowed(const resolved_egress& egress) {
  std::string out;
  for (const auto& r : egress.rules)
    if (r.action == egress_action::allow) out += (out.empty() ? "" : " ") + r.pattern;
  return out;
}

}  // namespace

TEST_CASE("a session gets the baseline and the enabled groups, what is denied, and the floor") {
  const auto egress = resolved(plain());
  CHECK(allowed(egress) == "llm.test git.test images.test");
  CHECK(egress.count(egress_action::deny) == 1);
  CHECK(egress.count(egress_action::floor) == 1);
  CHECK(egress.network_allowed);
  CHECK(egress.proxied);
  CHECK(egress.configured);
  CHECK(egress.bridge == egress_bridge::socat);
  CHECK(egress.options == config().options);
  CHECK(egress.rules[1] ==
        egress_rule{egress_action::allow, true, "git.test", "baseline.git", "repositories", "e.yaml:12"});
}

TEST_CASE("GitHub's domains come with the capability to call its API or to push") {
  auto spec = plain();
  spec.capabilities.call_github_api = true;
  CHECK(allowed(resolved(spec)) == "llm.test git.test images.test api.git.test");
  spec.capabilities.call_github_api = false;
  spec.capabilities.push = true;
  CHECK(allowed(resolved(spec)) == "llm.test git.test images.test api.git.test");
}

TEST_CASE("ticketing needs the caller's argument and the capability, both") {
  auto spec = plain();
  CHECK(allowed(resolved(spec, {"linear"})) == "llm.test git.test images.test");
  spec.capabilities.call_ticketing = true;
  CHECK(allowed(resolved(spec)) == "llm.test git.test images.test");
  CHECK(allowed(resolved(spec, {"jira"})) == "llm.test git.test images.test jira.test");
  CHECK(allowed(resolved(spec, {"linear", "jira"})) == "llm.test git.test images.test linear.test jira.test");
  const auto unknown = resolve_egress(spec, {&config(), {"trello"}, {}});
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == error_code::not_found);
  CHECK(unknown.error().what == "there is no ticketing group 'trello' in 'e.yaml'");
  CHECK(unknown.error().hint == "the groups are: linear jira");
}

TEST_CASE("the spec's own entries come last, as the caller wrote them") {
  auto spec = plain();
  spec.egress_allowlist = {"*.mine.test:8443", "git.test"};
  const auto egress = resolved(spec);
  CHECK(allowed(egress) == "llm.test git.test images.test *.mine.test:8443 git.test");
  const auto mine = std::find_if(egress.rules.begin(), egress.rules.end(),
                                 [](const auto& r) { return r.pattern == "*.mine.test:8443"; });
  CHECK(mine->origin == "egressAllowlist");
  CHECK(mine->where == "egressAllowlist[0]");
}

TEST_CASE(
    "with the network off nothing is allowed, whatever is asked for, and the pair is there all the same") {
  auto spec = plain();
  spec.egress_allowlist = {"mine.test"};
  spec.capabilities = {true, true, true, true};
  spec.network_enabled = false;
  SUBCASE("by the spec") {}
  SUBCASE("by the missing capability") {
    spec.network_enabled = true;
    spec.capabilities.network = false;
  }
  const auto egress = resolved(spec, {"linear"});
  CHECK(allowed(egress).empty());
  CHECK_FALSE(egress.network_allowed);
  CHECK(egress.proxied);
  CHECK(egress.count(egress_action::deny) == 1);
}

TEST_CASE(
    "without net_proxy_only there is no pair; with backend none only for who says something of the network") {
  auto spec = plain();
  spec.without = {"net_proxy_only"};
  CHECK_FALSE(resolved(spec).proxied);
  spec.without.clear();
  spec.backend = "none";
  CHECK_FALSE(resolved(spec).proxied);
  spec.egress_allowlist = {"mine.test"};
  CHECK(resolved(spec).proxied);
  spec.egress_allowlist.clear();
  spec.network_enabled = false;
  CHECK(resolved(spec).proxied);
}

TEST_CASE("without a file of rules there are none") {
  const auto egress = resolve_egress(plain(), {});
  REQUIRE(egress);
  CHECK_FALSE(egress->configured);
  CHECK(egress->rules.empty());
}
