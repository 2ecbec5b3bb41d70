// Expected failures are values: result<T> over error{code, what, hint}.
//
// `what` names the object and the cause; `hint` says what the operator can do (may be empty). Bugs are
// asserts or exceptions, not results. docs/errors.md lists the codes and how the CLI and the API show them.
#pragma once

#include <boost/system/result.hpp>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "utf8.hpp"

namespace ccbox {

enum class error_code {
  invalid_argument,   // the caller passed something malformed
  not_found,          // the named object does not exist
  conflict,           // it exists already, or somebody else holds it
  illegal_state,      // not possible in the object's present state
  permission_denied,  // this user may not
  unavailable,        // this host cannot do it: something is missing
  unenforceable,      // a required rule cannot be enforced; the launch is refused
  too_large,          // more than the mechanism takes
  timeout,            // a limit ran out
  failed,             // it should have worked and did not
};

std::string_view to_string(error_code code);

struct error {
  error_code code = error_code::failed;
  std::string what;
  std::string hint;
};

template <class T>
using result = boost::system::result<T, error>;

// A failed system call: "open '/x': Permission denied (EACCES)". `object` may be empty.
error system_error(std::string_view call, std::string_view object, int error_number, std::string hint = {});

// Needed by boost::system::result::value(); a value() on an error is a bug.
[[noreturn]] void throw_exception_from_error(const error& e, const boost::source_location& where);

// `text` in single quotes with everything unprintable escaped: for log lines, messages and terminals.
// Whatever a sandboxed process, a file name or a config file can influence goes through it.
std::string quoted(std::string_view text);
// The same without the quotes, for a text that stands alone on its line; quotes and backslashes stay as they
// are.
std::string printable(std::string_view text);

}  // namespace ccbox
