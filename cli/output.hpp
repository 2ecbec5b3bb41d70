// What the program says: lines for people on standard error, answers on standard output.
//
// Nothing printed here moves the cursor or colours a line, whatever a file name or a sandboxed process put
// into it: control characters come out as \n, \x1b and the like. A reader that goes away is no error.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "result.hpp"

namespace ccbox {

// Exit codes of the program itself; a command's own codes pass through unchanged.
constexpr int exit_refused = 125;         // refused, or failed before the command was executed
constexpr int exit_not_executable = 126;  // the command exists and cannot be executed
constexpr int exit_not_found = 127;       // there is no such command
constexpr int exit_signal_base = 128;     // + signal number

// "ccbox: error: WHAT" and "ccbox: hint: HINT" on standard error. Answers exit_refused.
int report(const error& e);
std::string error_text(const error& e);  // those lines
void warn(std::string_view text);
std::string warning_line(std::string_view text);

// All of `text` to descriptor `fd`, waiting where it must. False, and errno, if it cannot be written.
bool write_all(int fd, std::string_view text);
void print(std::string_view text);  // to standard output; what fails is kept for exit_code()
// One document, indented, with a newline. Malformed UTF-8 becomes U+FFFD.
void print_json(const boost::json::value& value);

// `code`, unless a part of the answer was lost: a full disk is an error like any other, and a reader that has
// gone away ends the program as SIGPIPE would.
int exit_code(int code);
// "write to standard output: No space left on device (ENOSPC)"
error lost_output(int error_number);
error abandoned_output();  // by a reader that has ceased to read

// Columns aligned by their widest cell; the last one is free. Rows may be shorter than others.
std::string aligned(const std::vector<std::vector<std::string>>& rows, std::string_view indent = "");

// `text` in a colour when standard output is a terminal and NO_COLOR is unset.
enum class tone { good, bad, attention, strong };
std::string toned(tone how, std::string_view text);

// {"type":"error","error":{…}} and a newline: an error among the lines of `run --json`.
std::string json_error_line(const error& e);

}  // namespace ccbox
