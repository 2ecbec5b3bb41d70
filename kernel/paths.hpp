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
  std::string executable;        // this program
  std::string egress;            // egress.yaml
  std::string net_connect;       // ccbox-net-connect
  std::string broker;            // ccbox-broker
};

// From /proc/self/exe: <prefix>/bin/ccbox → <prefix>/lib/ccbox/..., <prefix>/etc/ccbox/... (/etc/ccbox for
// /usr). An executable inside the build directory that this library was built in finds the build tree and the
// source's config/.
result<installation> find_installation();
result<installation> find_installation_of(const std::string& executable);

}  // namespace ccbox
