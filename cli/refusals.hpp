// What was refused in a run, and the destinations that its proxies could not reach, as lines for people: one
// for each file, destination or other object, and reason.
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
  void add(const sandbox_unreachable& destination);
  bool empty() const { return names_.empty() && refused_.empty() && unreached_.empty(); }
  // "refused 2 times to make '/work/.env': .env; mandatory deny: …" a line, of what has no verb of ours
  // "refused mach-lookup of 'com.example'", then
  // "refused 3 connections to evil.test:443: blocked-by-allowlist; --allow-domain evil.test", then
  // "3 connections to gone.test:443 failed: dns-no-such-name", for people: what the sandboxed command put
  // into it is escaped. At most twenty of each.
  std::string text(const std::vector<egress_rule>& rules = {}) const;

 private:
  struct tally {
    std::uint64_t count = 0;
    std::string rule;
    std::string capability;  // that would allow it
  };
  // Bounded: what finds no place is counted.
  class table {
   public:
    using key = std::pair<std::string, std::string>;  // target, reason
    void add(key what, std::uint64_t count, std::string rule, std::string capability = {});
    void add_others(std::uint64_t count) { others_ += count; }
    bool empty() const { return seen_.empty() && others_ == 0; }
    std::vector<const std::pair<const key, tally>*> most_frequent() const;  // twenty at most
    std::uint64_t others() const;                                           // connections to the rest
   private:
    std::map<key, tally> seen_;
    std::uint64_t others_ = 0;
  };
  bool network_allowed_;
  table names_, refused_, unreached_;
};

}  // namespace ccbox
