#include "policy_config.hpp"

#include "fuzz/target.hpp"
#include "glob.hpp"

namespace {

void check_entries(const std::vector<ccbox::config_entry>& entries, bool names) {
  for (const auto& entry : entries) {
    fuzz::require(!entry.pattern.empty() && entry.pattern.find('\0') == std::string::npos,
                  "a pattern can match");
    fuzz::require(!entry.reason.empty() && entry.reason.find('\n') == std::string::npos,
                  "a reason is one line");
    fuzz::require(entry.where.starts_with("policy.yaml:"), "an entry knows where it stands");
    if (names)
      fuzz::require(ccbox::compile_glob(entry.pattern).has_value(), "a name rule compiles");
    else
      fuzz::require(entry.pattern[0] == '/' || entry.pattern[0] == '~', "a path rule is anchored");
  }
}

void run(std::string_view text) {
  using ccbox::error_code;
  const auto config = ccbox::parse_policy_config(text, "policy.yaml");
  if (!config) {
    fuzz::require(config.error().what.find("policy.yaml") != std::string::npos, "the error names the file");
    return fuzz::require_good_error(config.error(), {error_code::invalid_argument, error_code::too_large});
  }
  for (const auto& rule : ccbox::all_rule_bits())
    if (!rule.waivable)
      fuzz::require(config->required_linux & rule.bit, "what no launch goes without is required");
  for (const auto* paths :
       {&config->system_read, &config->read_deny, &config->write_deny, &config->exec_deny})
    check_entries(*paths, false);
  check_entries(config->name_deny, true);
  check_entries(config->name_exempt, true);
}

const fuzz::registered target("policy_config", run);

}  // namespace
