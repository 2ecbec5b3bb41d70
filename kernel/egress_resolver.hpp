// What a session may reach, resolved from its spec and config/egress.yaml: the rule list that the egress
// plugin gets.
//
// allow = baseline + enabled optional groups + GitHub's domains if the agent may call its API or push + the
// spec's egressAllowlist + the ticketing groups that the caller names, if the agent may call ticketing.
// Network off, by the spec or by the missing capability: no allow rule at all. deny, floor and resolved
// ranges come from the file alone. Ticketing is an argument of whoever resolves; dispatch passes none.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "egress_config.hpp"
#include "egress_rule.hpp"
#include "result.hpp"
#include "sandbox_spec.hpp"

namespace ccbox {

// What the policy compiler needs for it.
struct egress_sources {
  const egress_config* config = nullptr;  // null: no pair is started, and nothing is reachable
  std::vector<std::string> ticketing;     // names of groups
  std::string net_connect;                // the ProxyCommand helper on the host; empty: there is none
};

struct resolved_egress {
  bool configured = false;  // false: no file of egress rules was given, and no pair is started
  // A pair belongs to the session. False: the host's network was asked for (net_proxy_only waived, or backend
  // none and nothing said about the network).
  bool proxied = false;
  bool network_allowed = false;
  std::vector<egress_rule> rules;
  std::vector<withheld_domain> withheld;
  std::vector<std::pair<std::string, std::string>> options;
  egress_bridge bridge = egress_bridge::direct;

  std::size_t count(egress_action action) const;
};

// Errors: a ticketing group that does not exist.
result<resolved_egress> resolve_egress(const sandbox_spec& spec, const egress_sources& sources);

// The spec's own entries in the plugin's eyes; the error names the one that is malformed.
result<void> check_allowlist(const resolved_egress& policy, const egress_plugin& plugin);

}  // namespace ccbox
