#include "context.hpp"

#include "log.hpp"

namespace ccbox {

namespace {

void choose_log_level(const config_options& options) {
  set_log_level(options.verbose ? log_level::debug : log_level::error);
}

}  // namespace

void declare(option_parser& parser, config_options& options) {
  parser.group("Configuration");
  parser.value("--plugins", options.plugins, "FILE", "Manifest of the plugins instead of the installed one");
  parser.value("--policy", options.policy, "FILE", "Policy file instead of the installed one");
  parser.value("--egress-config", options.egress, "FILE", "Egress file instead of the installed one");
  parser.flag("--verbose", options.verbose, "Log what is done to standard error");
}

result<policy_config> load_policy(const config_options& options) {
  choose_log_level(options);
  return load_policy_config(options.policy.value_or(""));
}

result<policy_setup> load_policy_context(const config_options& options, host_facts host) {
  choose_log_level(options);
  return load_policy_setup(options, std::move(host));
}

result<std::unique_ptr<sandbox_setup>> load_context(const config_options& options, ccbox_probe_depth depth,
                                                    host_facts host, plugin_choice which) {
  choose_log_level(options);
  return load_sandbox_setup(options, depth, std::move(host), which);
}

}  // namespace ccbox
