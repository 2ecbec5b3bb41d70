// config/plugins.yaml: which plugins to load, in which order of preference.
//
//   plugins:
//     - path: bubblewrap.so        # a name: of the plugin directory; with '/', from the manifest's directory
//       enabled: true
//       priority: 100              # the available backend with the highest wins when the spec names none
//       required: false            # true: a plugin that cannot be loaded stops the boot
//       on_request: false          # true: not loaded by a run that asks for no backend
//       sha256: <64 hex digits>    # optional
//       options: {key: scalar}
//   directories: [/usr/local/lib/ccbox/plugins.d]   # every *.so in them is loaded too: drop in, take out
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "result.hpp"

namespace ccbox {

struct manifest_entry {
  std::string path;  // absolute
  bool enabled = true;
  int priority = 0;
  bool required = false;
  bool on_request = false;            // has a meaning for registry::build() alone
  std::optional<std::string> sha256;  // lower case
  std::vector<std::pair<std::string, std::string>> options;
  std::string where;  // file:line:column

  bool operator==(const manifest_entry&) const = default;
};

struct manifest {
  std::string file;
  std::vector<manifest_entry> plugins;
  std::vector<std::string> directories;  // absolute; those that do not exist too

  bool operator==(const manifest&) const = default;
};

// Where the manifest means a file that it names without a '/'.
std::string in_plugin_directory(const std::string& name, const std::string& plugin_directory);

result<manifest> load_manifest(const std::string& path, const std::string& plugin_directory);
result<manifest> parse_manifest(std::string_view text, const std::string& name,
                                const std::string& plugin_directory);

}  // namespace ccbox
