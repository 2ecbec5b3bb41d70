#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/target.hpp"
#include "plugins/egress/egress_policy.hpp"

namespace {

using namespace ccbox::egress;

// The grammar of entries, word for word and slowly.
bool matches(const domain_pattern& pattern, const destination& to) {
  if (pattern.shape == domain_pattern::form::address)
    return to.is_address() && to.address() == pattern.address;
  if (to.is_address()) return false;
  const auto& name = to.name();
  if (pattern.shape == domain_pattern::form::exact) return name == pattern.name;
  const auto after = "." + (pattern.shape == domain_pattern::form::subdomains ? pattern.name : pattern.after);
  if (!name.ends_with(after)) return false;
  const auto rest = name.substr(0, name.size() - after.size());
  if (pattern.shape == domain_pattern::form::subdomains) return !rest.empty();
  const auto before = pattern.name + ".";
  return rest.size() > before.size() && rest.starts_with(before) &&
         rest.find('.', before.size()) == rest.npos;
}

struct parsed_rule {
  rule_action action;
  domain_pattern pattern;
};

void check_decision(const egress_policy& policy, const std::vector<parsed_rule>& rules,
                    const destination& to) {
  const auto d = policy.decide(to);
  const auto text = policy.explain(to, d);
  fuzz::require(std::all_of(text.begin(), text.end(), [](char c) { return c >= ' '; }),
                "a sentence is one line");
  if (d.by != nullptr && d.by->origin == built_in_origin) {
    fuzz::require(!d.allowed, "what is built in allows nothing");
    return;
  }
  bool denied = false, allowed = false, elsewhere = false;
  for (const auto& [action, pattern] : rules) {
    if (action == rule_action::deny && to.is_address()) {
      for (const auto& inner : embedded_in(to.address()))
        denied =
            denied || (matches(pattern, {inner, to.port}) && (pattern.port == 0 || pattern.port == to.port));
    }
    if (!matches(pattern, to)) continue;
    const bool fits = pattern.port == 0 ? action == rule_action::deny || to.port == 80 || to.port == 443
                                        : pattern.port == to.port;
    denied = denied || (action == rule_action::deny && fits);
    allowed = allowed || (action == rule_action::allow && fits);
    elsewhere = elsewhere || action == rule_action::allow;
  }
  fuzz::require(d.allowed == (allowed && !denied), "a list decides as its entries say");
  if (d.allowed) return;
  const auto expected = denied            ? denial_reason::denied
                        : elsewhere       ? denial_reason::port
                        : to.is_address() ? denial_reason::ip_literal
                                          : denial_reason::not_allowed;
  fuzz::require(d.reason == expected, "a refusal has its reason");
}

void require_reason(const std::string& why) {
  fuzz::require(
      !why.empty() && std::all_of(why.begin(), why.end(), [](char c) { return c >= ' ' && c <= '~'; }),
      "a bad rule has a reason, one line of ASCII");
}

std::optional<domain_pattern> parsed_pattern(const std::string& text) {
  const auto result = parse_domain_pattern(text);
  if (const auto* bad = std::get_if<bad_pattern>(&result)) {
    require_reason(bad->why);
    return {};
  }
  const auto& pattern = std::get<domain_pattern>(result);
  const auto again = parse_domain_pattern(to_string(pattern));
  fuzz::require(std::holds_alternative<domain_pattern>(again) && std::get<domain_pattern>(again) == pattern,
                "an entry that was written is itself");
  return pattern;
}

// The first line is a destination; each other line an allow entry, after ! a deny entry, after ^ a range of
// the floor and after + one that names may resolve into.
void run(std::string_view input) {
  std::vector<std::string> lines;
  while (!input.empty() && lines.size() < 64) {
    const auto end = std::min(input.find('\n'), input.size());
    lines.emplace_back(input.substr(0, end));
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  if (lines.empty()) return;
  std::vector<rule> all, rules;
  std::vector<parsed_rule> entries;
  std::optional<std::size_t> first_bad;
  bool has_floor = false;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    auto line = lines[i];
    auto action = rule_action::allow;
    if (line.starts_with("!")) action = rule_action::deny;
    if (line.starts_with("^")) action = rule_action::floor;
    if (line.starts_with("+")) action = rule_action::resolved;
    if (action != rule_action::allow) line.erase(0, 1);
    all.push_back({action, line, "line", ""});
    if (action == rule_action::floor || action == rule_action::resolved) {
      if (!parse_address_range(line)) {
        first_bad = first_bad.value_or(all.size() - 1);
        continue;
      }
      has_floor = has_floor || action == rule_action::floor;
    } else if (const auto pattern = parsed_pattern(line)) {
      entries.push_back({action, *pattern});
    } else {
      first_bad = first_bad.value_or(all.size() - 1);
      continue;
    }
    rules.push_back(all.back());
  }
  if (first_bad) {
    const auto refused = egress_policy::build(all);
    const auto* bad = std::get_if<bad_rule>(&refused);
    fuzz::require(bad != nullptr && bad->index == *first_bad, "the first bad rule is refused with its place");
    require_reason(bad->why);
  }
  const auto built = egress_policy::build(rules);
  fuzz::require(std::holds_alternative<std::shared_ptr<const egress_policy>>(built), "good rules are taken");
  const auto& policy = *std::get<std::shared_ptr<const egress_policy>>(built);
  fuzz::require(policy.rule_count() == rules.size(), "no rule gets lost");

  const auto result = parse_authority(lines[0], 443);
  const auto* to = std::get_if<destination>(&result);
  if (to == nullptr) return;
  if (!to->is_address() || !has_floor) check_decision(policy, entries, *to);
  if (!to->is_address()) return;
  if (classify(to->address()) == address_class::metadata) {
    fuzz::require(!policy.decide(*to).allowed, "no rule opens a metadata service");
    fuzz::require(!policy.permits(*to, to->address()).allowed, "nor for a name that resolves to it");
  }
  if (rules.empty() && classify(to->address()) != address_class::global)
    fuzz::require(!policy.permits(*to, to->address()).allowed,
                  "no name resolves into the host's own networks");
}

const fuzz::registered target("domain_rule", run);

}  // namespace
