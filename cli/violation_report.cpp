#include "violation_report.hpp"

#include <boost/json.hpp>

namespace ccbox {

std::optional<violations_mode> violations_mode_from_name(std::string_view name) {
  if (name == "none") return violations_mode::none;
  if (name == "summary") return violations_mode::summary;
  if (name == "all") return violations_mode::all;
  if (name == "json") return violations_mode::json;
  return std::nullopt;
}

std::string violation_report::take(const sandbox_event& event, const std::vector<egress_rule>& rules) {
  if (!event.violation && !event.unreachable) return {};
  if (mode_ == violations_mode::json) return boost::json::serialize(to_json(event)) + "\n";
  refusals alone(network_allowed_);
  refusals& where = mode_ == violations_mode::summary ? seen_ : alone;
  if (mode_ == violations_mode::none) return {};
  if (event.violation) where.add(*event.violation);
  if (event.unreachable) where.add(*event.unreachable);
  return alone.text(rules);
}

std::string violation_report::summary(const std::vector<egress_rule>& rules) const {
  return seen_.text(rules);
}

}  // namespace ccbox
