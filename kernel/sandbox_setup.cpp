#include "sandbox_setup.hpp"

#include <climits>
#include <cstdlib>

#include <sys/stat.h>

namespace ccbox {

namespace {

// Only the plugin knows what its options mean. A value that is the path of a file is taken for one that it
// reads or writes outside of every enclosure; what is no file (yet) is looked at again at each launch.
void add_files_of_plugin(const manifest_entry& plugin, std::vector<std::string>& out) {
  for (const auto& [key, value] : plugin.options) {
    if (value.empty() || value.front() != '/') continue;
    struct stat status {};
    if (::stat(value.c_str(), &status) != 0 || S_ISREG(status.st_mode)) out.push_back(value);
  }
}

// For host_facts::own_files.
std::vector<std::string> own_files(const config_files& files, const installation& parts,
                                   const manifest& plugins, const host_facts& host) {
  std::vector<std::string> out{parts.executable, parts.init, parts.net_connect, parts.broker};
  for (const auto& entry : plugins.plugins) {
    out.push_back(entry.path);
    add_files_of_plugin(entry, out);
  }
  // Whatever lies in them the next time is loaded.
  out.insert(out.end(), plugins.directories.begin(), plugins.directories.end());
  for (const auto& file : {files.plugins.value_or(parts.manifest), files.policy.value_or(parts.policy),
                           files.egress.value_or(parts.egress)})
    if (auto path = absolute_path(file, host)) out.push_back(*path);
  return out;
}

}  // namespace

result<std::string> absolute_path(const std::string& path, const host_facts& host) {
  if (path.empty()) return error{error_code::invalid_argument, "an empty path", "name a file or directory"};
  if (path.find('\0') != std::string::npos) {
    return error{error_code::invalid_argument, "path " + quoted(path) + " has a NUL byte", {}};
  }
  if (path.front() == '/') return path;
  if (host.current_directory.empty()) {
    return error{
        error_code::invalid_argument,
        "relative path " + quoted(path) + ", but the current directory has no path: " + no_current_path,
        "change to a directory that exists, or give an absolute path"};
  }
  if (path == ".") return host.current_directory;
  const bool at_root = host.current_directory == "/";
  return (at_root ? "" : host.current_directory) + "/" + (path.starts_with("./") ? path.substr(2) : path);
}

std::vector<std::string> as_arguments(const config_files& files, const host_facts& host) {
  std::vector<std::string> out;
  const auto add = [&](const char* name, const std::optional<std::string>& file) {
    if (!file) return;
    auto path = absolute_path(*file, host);
    char resolved[PATH_MAX];
    if (path && ::realpath(path->c_str(), resolved)) path = std::string(resolved);
    out.insert(out.end(), {name, path ? *path : *file});
  };
  add("--plugins", files.plugins);
  add("--policy", files.policy);
  add("--egress-config", files.egress);
  return out;
}

result<policy_setup> load_policy_setup(const config_files& files, host_facts host) {
  policy_setup made;
  auto parts = find_installation();
  if (!parts) return parts.error();
  made.parts = std::move(*parts);
  auto plugins = load_manifest(files.plugins.value_or(made.parts.manifest), made.parts.plugin_directory);
  if (!plugins) return plugins.error();
  made.plugin_list = std::move(*plugins);
  auto config = load_policy_config(files.policy.value_or(made.parts.policy));
  if (!config) return config.error();
  made.config = std::move(*config);
  auto egress = load_egress_config(files.egress.value_or(made.parts.egress));
  if (!egress) return egress.error();
  made.egress = std::move(*egress);
  made.host = std::move(host);
  made.host.own_files = own_files(files, made.parts, made.plugin_list, made.host);
  for (const auto& [key, value] : made.egress.options)
    if (key == "upstream_credentials_file") made.host.own_secrets.push_back(value);
  return made;
}

result<std::unique_ptr<sandbox_setup>> load_sandbox_setup(const config_files& files, ccbox_probe_depth depth,
                                                          host_facts host, plugin_choice which) {
  auto basis = load_policy_setup(files, std::move(host));
  if (!basis) return basis.error();
  auto setup = std::make_unique<sandbox_setup>();
  static_cast<policy_setup&>(*setup) = std::move(*basis);
  auto plugins = registry::build(setup->plugin_list, depth, which);
  if (!plugins) return plugins.error();
  setup->plugins = std::move(*plugins);
  if (const auto* proxies = setup->plugins->find_egress(); proxies && !setup->egress.as_built)
    if (auto fine = check_entries(setup->egress, *proxies); !fine) return fine.error();
  return setup;
}

bool encloses(const registry& plugins, const plugin_status& status) {
  const backend* found = plugins.find_backend(status.name);
  return found && found->kind() != "none" && status.probe && status.probe->available &&
         (permanent_rule_bits() & ~status.probe->enforced) == 0;
}

result<std::unique_ptr<egress_pair>> open_trial_pair(const egress_plugin& plugin, const policy& rules) {
  if (auto fine = check_allowlist(rules.egress, plugin); !fine) return fine.error();
  egress_request request;
  request.session_id = rules.spec.session_id;
  request.rules = rules.egress.rules;
  request.options = rules.egress.options;
  return plugin.open(request);
}

}  // namespace ccbox
