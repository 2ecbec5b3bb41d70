// A command as clients ask for one:
//
//   {"argv": ["make", "test"], "env": {"A": "b"}, "cwd": "/inside", "pty": {"rows": 24, "cols": 80},
//    "input": "what it reads from standard input"}
//
// argv alone must be there. And what a client says on the socket of a running one: {"type": "eof"},
// {"type": "signal", "signal": "TERM"}, {"type": "resize", "rows": 24, "cols": 80}.
#pragma once

#include <boost/json/fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "result.hpp"
#include "session.hpp"

namespace ccbox::server {

struct wanted_command {
  exec_request request;  // without descriptors
  std::optional<std::string> input;
};
// invalid_argument, naming the key.
result<wanted_command> wanted_command_from_json(std::string_view text);

struct end_of_input {};
struct send_signal {
  int number = 0;
};
using exec_instruction = std::variant<end_of_input, send_signal, window_size>;
result<exec_instruction> exec_instruction_from_json(std::string_view text);

// {"signal": "TERM"} and {"rows": 24, "cols": 80}, as bodies of requests.
result<int> signal_from_json(std::string_view text);
result<window_size> window_size_from_json(std::string_view text);

}  // namespace ccbox::server
