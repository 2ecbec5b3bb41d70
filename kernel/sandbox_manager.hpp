// The second dispatch seam: wrap(command, spec) for callers that spawn processes themselves (ACP clients, the
// harness's bash tool). It answers argv and environment; running them gives the same enclosure that the port
// would have made, because both go through prepare().
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "prepared_launch.hpp"
#include "result.hpp"
#include "sandbox_spec.hpp"

namespace ccbox {

struct wrapped_command {
  std::vector<std::string> argv;  // ccbox run --spec-json … -- command…
  std::vector<std::pair<std::string, std::string>> env;
  std::string backend;  // the plugin that will serve it; argv insists on it
  std::vector<std::string> warnings;
};

class sandbox_manager {
 public:
  // `runner`: the ccbox executable; `config_arguments`: the --plugins/--policy options that make it read the
  // same files.
  sandbox_manager(sandbox_context context, std::string runner, std::vector<std::string> config_arguments);
  // Refuses what launch() refuses, now, rather than when the caller runs it; too_large: more than fits into
  // one argument; invalid_argument: a field with bytes that JSON cannot carry. The environment is sanitised,
  // whatever the backend. The working directory of whoever runs it does not matter.
  result<wrapped_command> wrap(const std::vector<std::string>& command, const sandbox_spec& spec) const;

 private:
  sandbox_context context_;
  std::string runner_;
  std::vector<std::string> config_arguments_;
};

}  // namespace ccbox
