#include "egress_resolver.hpp"

#include <algorithm>

#include "lone_word.hpp"
#include "rule_bits.hpp"

namespace ccbox {

namespace {

constexpr std::string_view spec_origin = "egressAllowlist";

bool is_proxied(const sandbox_spec& spec) {
  if (waived_bits(spec) & CCBOX_RULE_NET_PROXY_ONLY) return false;
  // Without an enclosure the network is the host's; a pair is there for who asks for one.
  if (spec.backend == "none")
    return !spec.egress_allowlist.empty() || !spec.network_enabled || !spec.capabilities.network;
  return true;
}

class resolver {
 public:
  resolver(const egress_config& config, resolved_egress& out) : config_(config), out_(out) {}

  void add(const std::vector<egress_group>& groups, egress_action action) {
    for (const auto& group : groups)
      if (group.enabled) add(group, action);
  }

  void add(const egress_group& group, egress_action action) {
    for (const auto& entry : group.entries)
      out_.rules.push_back(to_rule(config_, group, entry, action));
  }

 private:
  const egress_config& config_;
  resolved_egress& out_;
};

void withhold(const egress_group& group, const char* capability, std::vector<withheld_domain>& out) {
  if (!group.enabled) return;
  for (const auto& entry : group.entries)
    out.push_back({entry.pattern, capability});
}

}  // namespace

std::size_t resolved_egress::count(egress_action action) const {
  return static_cast<std::size_t>(
      std::count_if(rules.begin(), rules.end(), [&](const egress_rule& r) { return r.action == action; }));
}

result<resolved_egress> resolve_egress(const sandbox_spec& spec, const egress_sources& sources) {
  resolved_egress out;
  out.proxied = is_proxied(spec);
  out.network_allowed = spec.network_enabled && spec.capabilities.network;
  if (!sources.config) return out;
  const egress_config& config = *sources.config;
  out.configured = true;
  out.bridge = config.bridge;
  out.options = config.options;
  resolver add(config, out);
  std::vector<const egress_group*> named;
  for (const auto& name : sources.ticketing) {
    const auto found = std::find_if(config.ticketing.begin(), config.ticketing.end(),
                                    [&](const egress_group& g) { return g.name == name; });
    if (found == config.ticketing.end()) {
      error e{error_code::not_found,
              "there is no ticketing group " + quoted(name) + " in " + quoted(config.file),
              "the groups are:"};
      for (const auto& group : config.ticketing)
        e.hint += " " + group.name;
      return e;
    }
    named.push_back(&*found);
  }
  if (out.network_allowed) {
    std::size_t index = 0;
    add.add(config.baseline, egress_action::allow);
    add.add(config.optional, egress_action::allow);
    if (spec.capabilities.call_github_api || spec.capabilities.push) {
      add.add(config.github, egress_action::allow);
    } else {
      for (const auto& group : config.github)
        withhold(group, "canCallGitHubApi", out.withheld);
    }
    for (const auto* group : named) {
      if (spec.capabilities.call_ticketing)
        add.add(*group, egress_action::allow);
      else
        withhold(*group, "canCallTicketing", out.withheld);
    }
    for (const auto& domain : spec.egress_allowlist)
      out.rules.push_back({egress_action::allow, false, domain, std::string(spec_origin),
                           "asked for by the spec",
                           std::string(spec_origin) + "[" + std::to_string(index++) + "]"});
  }
  add.add(config.denied, egress_action::deny);
  add.add(config.floor, egress_action::floor);
  egress_group resolved;
  resolved.origin = "settings.allowed_resolved_ranges";
  for (const auto& entry : config.resolved_ranges)
    out.rules.push_back(to_rule(config, resolved, entry, egress_action::resolved));
  return out;
}

result<void> check_allowlist(const resolved_egress& policy, const egress_plugin& plugin) {
  for (const auto& rule : policy.rules) {
    if (rule.origin != spec_origin) continue;
    if (is_lone_word(rule.pattern))
      return error{error_code::invalid_argument,
                   rule.where + ": " + quoted(rule.pattern) + " is a name without a dot",
                   std::string(lone_word_hint)};
    if (auto fine = plugin.check_rule(rule); !fine) return fine;
  }
  return {};
}

}  // namespace ccbox
