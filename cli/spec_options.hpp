// The options that say what a sandbox is to be, and the spec they make: the current directory read-write when
// nothing is said about binds, an absolute path for every relative one, numbers for sizes and times.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host.hpp"
#include "option_origins.hpp"
#include "option_parser.hpp"
#include "policy_config.hpp"
#include "result.hpp"
#include "sandbox_spec.hpp"

namespace ccbox {

struct spec_options {
  std::vector<std::string> bind, read_only, mount;  // mount: three words each
  std::vector<std::string> protect, state_dirs, exec_grants, without, env, allow_domains, ticketing;
  std::optional<std::string> workdir, mode, spec_file, spec_json, backend, session;
  std::optional<std::string> memory, cpus, processes, file_size, timeout;
  bool no_network = false;
};
void declare(option_parser& parser, spec_options& options);

struct requested_sandbox {
  sandbox_spec spec;                                     // validated
  std::vector<std::pair<std::string, std::string>> env;  // --env, on top of the sanitised environment
  option_origins origins;                                // for errors of the launch
};

// Reads --spec; options add to lists and replace single values of it. Errors name the option.
result<requested_sandbox> build_request(const spec_options& options, const host_facts& host);

// What a person is told about variables of --env that would be dropped had they not been named.
std::vector<std::string> warnings_about(const requested_sandbox& request, const environment_config& config);

}  // namespace ccbox
