#include "egress_config.hpp"

#include <algorithm>

#include "egress_resolver.hpp"
#include "fuzz/target.hpp"

namespace {

using ccbox::error_code;

void check_group(const ccbox::egress_group& group, std::string_view text) {
  fuzz::require(!group.name.empty() && !group.why.empty(), "a group has a name and says why");
  for (const auto& entry : group.entries) {
    fuzz::require(!entry.pattern.empty() && entry.pattern.find_first_of(" \t\n") == std::string::npos,
                  "a pattern is one word");
    fuzz::require(!entry.reason.empty() && entry.reason.find('\n') == std::string::npos,
                  "a reason is one line");
    fuzz::require(entry.line >= 1 &&
                      entry.line <= static_cast<unsigned>(std::count(text.begin(), text.end(), '\n')) + 1,
                  "an entry stands in the file");
  }
}

void run(std::string_view text) {
  const auto config = ccbox::parse_egress_config(text, "egress.yaml");
  if (!config) {
    fuzz::require(config.error().what.find("egress.yaml") != std::string::npos, "the error names the file");
    return fuzz::require_good_error(config.error(), {error_code::invalid_argument, error_code::too_large});
  }
  for (const auto* groups : {&config->baseline, &config->github, &config->ticketing, &config->optional,
                             &config->denied, &config->floor})
    for (const auto& group : *groups)
      check_group(group, text);
  ccbox::sandbox_spec spec;
  spec.network_enabled = false;
  const auto off = ccbox::resolve_egress(spec, {&*config, {}, {}});
  fuzz::require(off && off->count(ccbox::egress_action::allow) == 0,
                "with the network off nothing is allowed");
}

const fuzz::registered target("egress_config", run);

}  // namespace
