// The denies with fixed paths of spec and config: secrets, protected paths and mandatory denies, spelled both
// ways and held against the mounts. deny_rules makes rules of them.
#pragma once

#include <string>
#include <vector>

#include "host.hpp"
#include "path_spelling.hpp"
#include "policy.hpp"
#include "policy_config.hpp"
#include "result.hpp"
#include "sandbox_spec.hpp"

namespace ccbox {

struct fixed_deny {
  rule_kind kind = rule_kind::write_deny;  // a read deny denies writing too
  rule_origin origin = rule_origin::mandatory;
  path_spelling spelling;
  std::string reason;
};
// Not expanded, but that what exists now of a read-deny glob is among the fixed ones too.
struct glob_deny {
  rule_kind kind = rule_kind::write_deny;
  rule_origin origin = rule_origin::mandatory;
  std::string pattern;  // absolute
  std::string reason;
};
struct deny_list {
  std::vector<fixed_deny> fixed;
  std::vector<glob_deny> globs;
};

// Reads the host: spellings, existing matches of read-deny globs and, for root, what of /etc is private.
result<deny_list> collect_denies(const sandbox_spec& spec, const host_facts& host,
                                 const policy_config& config, const std::vector<rule>& mounts);

// Mounts that lie in a denied path: read-only below a write deny, refused below a read deny. Where read
// denies are waived they are write denies still.
result<void> restrict_mounts(std::vector<rule>& mounts, const deny_list& denies, rule_bits waived,
                             std::vector<std::string>& warnings);

}  // namespace ccbox
