// Rules and policies of the proxies in tests, in few words.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/egress/egress_policy.hpp"

namespace ccbox::test {

using namespace egress;

using policy_ptr = std::shared_ptr<const egress_policy>;

inline rule allow(std::string pattern, std::string origin = "test.allow") {
  return {rule_action::allow, std::move(pattern), std::move(origin), ""};
}

inline rule deny(std::string pattern, std::string origin = "test.deny") {
  return {rule_action::deny, std::move(pattern), std::move(origin), "it is a telemetry sink"};
}

inline rule git(std::string pattern) {
  auto out = allow(std::move(pattern), "baseline.git");
  out.git_host = true;
  return out;
}

inline rule floor_range(std::string range) {
  return {rule_action::floor, std::move(range), "egress.yaml:7", ""};
}

inline rule resolved_range(std::string range) {
  return {rule_action::resolved, std::move(range), "egress.yaml:9", ""};
}

inline policy_ptr build(std::vector<rule> rules) {
  auto result = egress_policy::build(std::move(rules));
  if (const auto* bad = std::get_if<bad_rule>(&result)) FAIL(bad->why);
  return std::get<policy_ptr>(result);
}

inline destination to(std::string_view authority) {
  const auto result = parse_authority(authority, 443);
  if (const auto* bad = std::get_if<malformed>(&result)) FAIL(std::string(bad->why));
  return std::get<destination>(result);
}

// "allowed", or the reason as machines read it.
inline std::string verdict(const decision& d) {
  return d.allowed ? "allowed" : std::string(to_string(d.reason));
}

inline std::string decide(const policy_ptr& policy, std::string_view authority) {
  return verdict(policy->decide(to(authority)));
}

inline std::string permits(const policy_ptr& policy, std::string_view authority, std::string_view address) {
  const auto parsed = parse_ip_address(address);
  REQUIRE_MESSAGE(parsed, std::string(address));
  return verdict(policy->permits(to(authority), *parsed));
}

inline std::string text_of(const policy_ptr& policy, std::string_view authority) {
  const auto d = policy->decide(to(authority));
  REQUIRE_FALSE(d.allowed);
  return policy->explain(to(authority), d);
}

inline std::string resolved_text(const policy_ptr& policy, std::string_view authority,
                                 std::string_view address) {
  const auto d = policy->permits(to(authority), *parse_ip_address(address));
  REQUIRE_FALSE(d.allowed);
  return policy->explain(to(authority), d);
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

}  // namespace ccbox::test
