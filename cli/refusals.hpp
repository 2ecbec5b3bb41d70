// The destinations that a run's proxies refused, for the lines at its end: one for each destination and
// reason.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "egress_rule.hpp"
#include "sandbox_event.hpp"

namespace ccbox {

// Whether no rule allows it, so that one more would.
bool is_by_list(std::string_view reason);

// The short remedy for a reason of the egress plugin ("blocked-by-allowlist"); empty: there is none. `rule`,
// as "PATTERN (ORIGIN)", is the one that decided, looked up among `rules` for where it was written.
std::string remedy_of(const std::string& reason, const std::string& target, bool network_allowed,
                      const std::string& rule = {}, const std::vector<egress_rule>& rules = {});

class refusals {
 public:
  explicit refusals(bool network_allowed) : network_allowed_(network_allowed) {}

  void add(const sandbox_violation& violation);
  bool empty() const { return seen_.empty() && others_ == 0; }
  // "refused 3 connections to evil.test:443: blocked-by-allowlist; --allow-domain evil.test" a line, for
  // people: what the sandboxed command put into it is escaped. At most twenty.
  std::string text(const std::vector<egress_rule>& rules = {}) const;

 private:
  struct tally {
    std::uint64_t count = 0;
    std::string rule;
  };
  bool network_allowed_;
  std::map<std::pair<std::string, std::string>, tally> seen_;  // target, reason
  std::uint64_t others_ = 0;                                   // that found no place
};

}  // namespace ccbox
