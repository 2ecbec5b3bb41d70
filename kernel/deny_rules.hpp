// From denies, name rules and mounts to the rules of a policy.
//
// On Linux mounts can only cover what exists: what exists becomes read and write denies (the existing matches
// of name rules too), and what does not exist yet in a writable mount becomes a name deny. Name rules are
// anchored to every writable mount, at any depth; what leads to the mount counts: mounting `/w/.git` protects
// its `hooks` just as mounting `/w` does. Runner state is the exception: only what lies inside it counts.
#pragma once

#include <string>
#include <vector>

#include "glob.hpp"
#include "host.hpp"
#include "policy.hpp"
#include "policy_config.hpp"
#include "policy_denies.hpp"
#include "result.hpp"

namespace ccbox {

// The name rules of a config, ready to match: both functions below want them.
struct name_rules {
  glob_set deny, exempt;  // by the config's indices
};
result<name_rules> compile_name_rules(const policy_config& config);

struct deny_request {
  const deny_list& denies;
  const name_rules& names;
  const std::vector<rule>& mounts;  // final
  const host_facts& host;
  const policy_config& config;
  const std::vector<std::string>& exec_grant_roots;
  rule_bits waived = 0;
  std::vector<std::string>& warnings;
};

// In the order that policy.hpp promises. Walks every writable mount; too_large when there are more existing
// matches than the config allows, or more name rules than 100,000 over all mounts.
result<std::vector<rule>> compile_denies(const deny_request& request);

// Writable mounts that a name rule covers as a whole (the file `/w/.env`, the directory `/w/.git/hooks/x`)
// become read-only.
void restrict_mounts_by_name(std::vector<rule>& mounts, const policy_config& config, const name_rules& names,
                             std::vector<std::string>& warnings);

}  // namespace ccbox
