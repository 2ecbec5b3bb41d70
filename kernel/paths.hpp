// Where this ccbox finds its parts: beside its executable in a build tree, under the prefix when installed.
#pragma once

#include <string>

#include "result.hpp"

namespace ccbox {

struct installation {
  std::string init;              // ccbox-init
  std::string plugin_directory;  // *.so
  std::string manifest;          // plugins.yaml
  std::string policy;            // policy.yaml
};

// From /proc/self/exe: <prefix>/bin/ccbox → <prefix>/lib/ccbox/..., <prefix>/etc/ccbox/..., else the build tree.
result<installation> find_installation();

}  // namespace ccbox
