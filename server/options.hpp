// What cc_server was asked for: its options, and CC_SERVER_SANDBOX.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "log.hpp"
#include "result.hpp"
#include "sandbox_setup.hpp"

namespace ccbox::server {

struct server_options {
  bool sandbox = true;  // --sandbox on|off, else CC_SERVER_SANDBOX; an opt-out
  std::optional<std::string> state_directory;
  std::optional<std::string> socket;         // absent: in the state directory
  std::optional<std::string> listen;         // ADDRESS:PORT on loopback
  std::optional<std::string> token_file;     // of those who connect by TCP
  std::vector<std::string> allowed_origins;  // of browsers; none by default
  config_files files;
  log_level level = log_level::info;
};

struct parsed_options {
  std::optional<int> exit_code;  // --help, --version: said already
  server_options options;
};
// invalid_argument for what is unknown or malformed. `sandbox_variable`: CC_SERVER_SANDBOX, if it is set.
result<parsed_options> parse_options(const std::vector<std::string>& arguments,
                                     const std::optional<std::string>& sandbox_variable);

}  // namespace ccbox::server
