// What a line of a command's standard error says of a refused system call: the verb, what it was done to, the
// program. Knows the ways in which shells, coreutils, git, tar, python, node, go, rust, ruby, perl, java and
// their like write it; guesses nothing where they say nothing.
//
//   sh: 1: cannot create /etc/x: Permission denied             file-write-create /etc/x
//   cp: cannot open 'x y' for reading: Permission denied       file-read-data x y
//   PermissionError: [Errno 13] Permission denied: 'x'         file* x
//   Error: EACCES: permission denied, mkdir '/x'               file-write-create /x
//   ping: socket: Operation not permitted                      system-socket ping
//
// The verbs are those of macOS; `file*`: the line does not say. Any bytes; the answer's texts are parts of
// the line, without escape sequences of terminals.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ccbox::violations {

struct refused_line {
  std::string action;
  std::string target;    // as the program wrote it; never empty
  std::string program;   // empty: the line does not name it
  bool is_path = false;  // the target is one
  bool operator==(const refused_line&) const = default;
};

// Nothing: it is about something else, such as a password that ssh did not take.
std::optional<refused_line> read_refused_line(std::string_view line);

// Without sequences that colour or move: CSI, OSC and the two-byte ones.
std::string without_escape_sequences(std::string_view line);

}  // namespace ccbox::violations
