// The command line's choice of config files, and what is loaded from them. How much is logged is decided
// here.
#pragma once

#include <memory>

#include "option_parser.hpp"
#include "result.hpp"
#include "sandbox_setup.hpp"

namespace ccbox {

struct config_options : config_files {
  bool verbose = false;
};
void declare(option_parser& parser, config_options& options);

// The policy file alone.
result<policy_config> load_policy(const config_options& options);
result<policy_setup> load_policy_context(const config_options& options, host_facts host);
result<std::unique_ptr<sandbox_setup>> load_context(const config_options& options, ccbox_probe_depth depth,
                                                    host_facts host,
                                                    plugin_choice which = plugin_choice::all);

}  // namespace ccbox
