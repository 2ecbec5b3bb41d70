// What a program over the kernel starts from: the installation, the config files and the plugins, each read
// once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "egress_config.hpp"
#include "egress_resolver.hpp"
#include "host.hpp"
#include "manifest.hpp"
#include "paths.hpp"
#include "policy_config.hpp"
#include "prepared_launch.hpp"
#include "registry.hpp"
#include "result.hpp"

namespace ccbox {

// Files other than the installed ones.
struct config_files {
  std::optional<std::string> plugins;  // --plugins FILE
  std::optional<std::string> policy;   // --policy FILE
  std::optional<std::string> egress;   // --egress-config FILE
};
// The same choice as arguments, for an argv that runs ccbox again. Paths are made absolute.
std::vector<std::string> as_arguments(const config_files& files, const host_facts& host);

// Enough to compile a policy: no plugin is loaded.
struct policy_setup {
  installation parts;
  host_facts host;
  manifest plugin_list;
  policy_config config;
  egress_config egress;
  std::vector<std::string> ticketing;  // groups of the egress file that the caller names

  // Borrows from this object.
  egress_sources sources() const { return {&egress, ticketing, parts.net_connect}; }
};
result<policy_setup> load_policy_setup(const config_files& files, host_facts host);

struct sandbox_setup : policy_setup {
  std::unique_ptr<registry> plugins;

  // Borrows from this object.
  sandbox_context shared() const { return {plugins.get(), &config, host, parts.init, sources()}; }
};

// `depth`: quick where a launch follows and proves the rest.
result<std::unique_ptr<sandbox_setup>> load_sandbox_setup(const config_files& files, ccbox_probe_depth depth,
                                                          host_facts host,
                                                          plugin_choice which = plugin_choice::all);

// A backend that can be used here and has what no enclosure goes without, as opposed to `none` and to a
// plugin that somebody has just begun.
bool encloses(const registry& plugins, const plugin_status& status);

// A pair that nobody is to connect to: for what it decides, and for what its plugin says of the rules.
result<std::unique_ptr<egress_pair>> open_trial_pair(const egress_plugin& plugin, const policy& rules);

// Why host_facts::current_directory can be empty.
constexpr char no_current_path[] = "it has been deleted, or the path is too long";

// `path` made absolute against the current directory; `.` and `..` are left to the kernel of the host.
result<std::string> absolute_path(const std::string& path, const host_facts& host);

}  // namespace ccbox
