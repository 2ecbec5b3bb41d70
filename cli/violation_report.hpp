// What a run tells of its violations, as `--violations` has it.
//
//   none     nothing
//   summary  the lines of `refusals`, at the end
//   all      each violation as such a line, as it comes
//   json     each as its event, one JSON object a line, as it comes
//
// Destinations that are allowed and were not reached are told of in the same way. Nothing that the sandboxed
// command put into a violation can move a cursor or forge a line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "egress_rule.hpp"
#include "refusals.hpp"
#include "sandbox_event.hpp"

namespace ccbox {

enum class violations_mode { none, summary, all, json };
std::optional<violations_mode> violations_mode_from_name(std::string_view name);
constexpr std::string_view violations_modes = "none|summary|all|json";

class violation_report {
 public:
  violation_report(violations_mode mode, bool network_allowed)
      : mode_(mode), network_allowed_(network_allowed), seen_(network_allowed) {}

  // What to write for it now, whole lines; events of other types are nothing.
  std::string take(const sandbox_event& event, const std::vector<egress_rule>& rules);
  // What to write at the end.
  std::string summary(const std::vector<egress_rule>& rules) const;

 private:
  violations_mode mode_;
  bool network_allowed_;
  refusals seen_;
};

}  // namespace ccbox
