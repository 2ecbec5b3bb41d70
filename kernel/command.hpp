// A command for an enclosure, and what ccbox-init is told of it and answers.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "init/protocol.hpp"
#include "limits.hpp"
#include "result.hpp"
#include "unique_fd.hpp"

namespace ccbox {

struct window_size {
  unsigned rows = 24, cols = 80;
};
result<void> check_size(const window_size& size);  // invalid_argument: more than a terminal can have

struct command {
  std::vector<std::string> argv;  // argv[0] is searched in the PATH of `env`, inside the enclosure
  std::vector<std::pair<std::string, std::string>> env;
  std::string cwd;                       // absolute, inside
  std::array<unique_fd, 3> descriptors;  // one that is not open comes from the pty, or else is /dev/null
  std::optional<window_size> pty;
};

// The frame that starts it. invalid_argument for what ccbox-init would not decode, which would end it.
result<init::exec_message> to_message(const command& c, const limit_group& limits);

// Why init could not start it: not_found (exit code 127) or permission_denied (126) where its program is at
// fault, invalid_argument for cwd, else failed.
error start_failure(const command& c, const init::failed_message& m);

}  // namespace ccbox
