#include "command.hpp"

#include <algorithm>
#include <cerrno>

namespace ccbox {
namespace {

error invalid(std::string what) {
  return {error_code::invalid_argument, std::move(what), ""};
}

const char* step_name(init::exec_stage stage) {
  switch (stage) {
    case init::exec_stage::descriptors:
      return "place descriptors for";
    case init::exec_stage::pty:
      return "open a terminal for";
    case init::exec_stage::fork:
      return "fork for";
    case init::exec_stage::limits:
      return "set limits for";
    case init::exec_stage::chdir:
      return "change directory to";
    case init::exec_stage::exec:
      return "exec";
    case init::exec_stage::listen:
      return "listen for";
  }
  return "start";
}

}  // namespace

result<void> check_size(const window_size& size) {
  constexpr unsigned most = 0xffff;  // what winsize and a frame to init have room for
  if (size.rows <= most && size.cols <= most) return {};
  return invalid("a terminal of " + std::to_string(size.rows) + " rows and " + std::to_string(size.cols) +
                 " columns: " + std::to_string(most) + " is the most of either");
}

result<init::exec_message> to_message(const command& c, const limit_group& limits) {
  auto has_nul = [](const std::string& s) { return s.find('\0') != s.npos; };
  if (c.argv.empty() || c.argv[0].empty()) return invalid("the command is empty");
  if (std::any_of(c.argv.begin(), c.argv.end(), has_nul)) return invalid("an argument has a NUL byte");
  if (c.cwd.empty() || c.cwd[0] != '/' || has_nul(c.cwd)) {
    return invalid("the working directory " + quoted(c.cwd) + " is not an absolute path");
  }
  init::exec_message m;
  m.argv = c.argv;
  for (const auto& [name, value] : c.env) {
    if (name.empty() || name.find('=') != name.npos || has_nul(name) || has_nul(value)) {
      return invalid("malformed environment variable " + quoted(name));
    }
    m.env.push_back(name + "=" + value);
  }
  m.cwd = c.cwd;
  for (unsigned i = 0; i < 3; ++i) {
    if (c.descriptors[i]) m.flags |= init::exec_stdin << i;
  }
  if (c.pty) {
    if (auto ok = check_size(*c.pty); !ok) return ok.error();
    m.flags |= init::exec_pty;
    m.rows = c.pty->rows;
    m.cols = c.pty->cols;
  }
  m.limits = limits.rlimits();
  return m;
}

error start_failure(const command& c, const init::failed_message& m) {
  const int number = static_cast<int>(m.error_number);
  const bool chdir = m.stage == init::exec_stage::chdir;
  error e = system_error(step_name(m.stage), chdir ? c.cwd : c.argv[0], number);
  if (chdir) {
    e.code = error_code::invalid_argument;
  } else if (m.stage != init::exec_stage::exec) {
    e.code = error_code::failed;
    if (m.stage == init::exec_stage::descriptors && number == ESOCKTNOSUPPORT)
      e.hint =
          "a network or datagram socket as standard input or output leads to the host's network: pass it "
          "through a pipe (cat | … | cat)";
    if (m.stage == init::exec_stage::descriptors && number == EISDIR)
      e.hint =
          "a directory as standard input or output leads out of the enclosure: redirect it to a file or to "
          "/dev/null";
  } else if (number == ENOEXEC || number == EISDIR || number == ELIBBAD || number == ETXTBSY) {
    e.code = error_code::permission_denied;  // there, but not to be executed: exit code 126
  }
  return e;
}

}  // namespace ccbox
