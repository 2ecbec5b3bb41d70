#include "command.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <string>

#include "program.hpp"
#include "terminal.hpp"

namespace ccbox::init {
namespace {

constexpr int report_fd = 3;

struct child_request {
  char* const* argv;
  char* const* env;
  const exec_message& message;
  std::array<int, 3> stdio;  // all above 2
  int terminal;              // -1: none
  int report;
  pid_t init;
  bool confined;
};

std::vector<char*> c_strings(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const auto& word : words)
    pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

[[noreturn]] void report_and_exit(int report, exec_stage stage, int error_number) {
  const std::uint32_t record[] = {static_cast<std::uint32_t>(stage),
                                  static_cast<std::uint32_t>(error_number)};
  (void)!write(report, record, sizeof record);
  _exit(127);
}

// A limit that is stricter already stays.
int apply_limit(std::uint32_t resource, std::uint64_t value) {
  rlimit limit;
  const auto which = static_cast<__rlimit_resource_t>(resource);
  if (getrlimit(which, &limit) != 0) return errno;
  limit.rlim_cur = limit.rlim_max = std::min<rlim_t>(value, limit.rlim_max);
  return setrlimit(which, &limit) == 0 ? 0 : errno;
}

// chdir, but never to a place outside of the root (through /proc/self/fd/N, say): the kernel then calls it
// "(unreachable)", and libc's getcwd would hide that.
int enter_directory(const std::string& path) {
  if (chdir(path.c_str()) != 0) return errno;
  char where[PATH_MAX];
  if (syscall(SYS_getcwd, where, sizeof where) < 0) return errno;
  return where[0] == '/' ? 0 : ENOENT;
}

[[noreturn]] void run_child(const child_request& request) {
  setsid();
  if (!request.confined) {  // an enclosure's first process takes everything with it anyway
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != request.init) _exit(127);
  }
  if (request.terminal >= 0 && ioctl(request.terminal, TIOCSCTTY, 0) != 0)
    report_and_exit(request.report, exec_stage::pty, errno);
  for (int number = 0; number < 3; ++number)
    if (dup2(request.stdio[static_cast<std::size_t>(number)], number) < 0)
      report_and_exit(request.report, exec_stage::descriptors, errno);
  if (request.report != report_fd && dup3(request.report, report_fd, O_CLOEXEC) < 0)
    report_and_exit(request.report, exec_stage::descriptors, errno);
  if (close_range(report_fd + 1, ~0u, 0) != 0) report_and_exit(report_fd, exec_stage::descriptors, errno);

  for (const auto& [resource, value] : request.message.limits)
    if (const int error_number = apply_limit(resource, value))
      report_and_exit(report_fd, exec_stage::limits, error_number);
  if (const int error_number = enter_directory(request.message.cwd))
    report_and_exit(report_fd, exec_stage::chdir, error_number);

  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  report_and_exit(report_fd, exec_stage::exec, execute_program(request.argv, request.env));
}

int socket_option(int fd, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  return getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

// What a socket reaches is decided by where it was made, which is outside; only one that is connected for
// good reaches nothing more. Others can be disconnected and connected again, or name an address with each
// message.
bool is_connected_for_good(int fd) {
  sockaddr_storage peer;
  socklen_t size = sizeof peer;
  const int type = socket_option(fd, SO_TYPE);
  return socket_option(fd, SO_DOMAIN) == AF_UNIX && (type == SOCK_STREAM || type == SOCK_SEQPACKET) &&
         getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
}

// Would a command that is given it have a way out of its enclosure? 0, or what to call that.
int leads_out(int fd) {
  struct stat file;
  if (fstat(fd, &file) != 0) return errno;
  if (S_ISDIR(file.st_mode)) return EISDIR;
  return S_ISSOCK(file.st_mode) && !is_connected_for_good(fd) ? ESOCKTNOSUPPORT : 0;
}

failed_message failure_at(exec_stage stage, int error_number) {
  return {stage, static_cast<std::uint32_t>(error_number)};
}

}  // namespace

std::optional<failed_message> start_command(const exec_message& message, std::vector<unique_fd> descriptors,
                                            bool confined, command& into) {
  if (confined)
    for (const unique_fd& fd : descriptors)
      if (const int error_number = leads_out(fd.get()))
        return failure_at(exec_stage::descriptors, error_number);

  terminal tty;
  if (message.flags & exec_pty)
    if (const int error_number = open_terminal(message.rows, message.cols, tty))
      return failure_at(exec_stage::pty, error_number);

  const auto null =
      unique_fd(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));  // init's own standard input is /dev/null
  int ends[2];
  if (!null || pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return failure_at(exec_stage::descriptors, errno);
  unique_fd outcome(ends[0]);
  const unique_fd report(ends[1]);

  const auto argv = c_strings(message.argv), env = c_strings(message.env);
  child_request request{argv.data(),     env.data(),   message,  {},
                        tty.slave.get(), report.get(), getpid(), confined};
  auto next = descriptors.begin();
  for (std::size_t i = 0; i < request.stdio.size(); ++i) {
    if (message.flags & exec_stdin << i)
      request.stdio[i] = (next++)->get();
    else
      request.stdio[i] = tty.slave ? tty.slave.get() : null.get();
  }

  const pid_t pid = fork();
  if (pid < 0) return failure_at(exec_stage::fork, errno);
  if (pid == 0) run_child(request);
  into.pid = pid;
  into.has_terminal = static_cast<bool>(tty.slave);
  into.start = std::move(outcome);
  into.master = std::move(tty.master);
  return std::nullopt;
}

start_outcome poll_start(command& c, failed_message& why) {
  std::uint32_t record[2];
  const ssize_t size = read(c.start.get(), record, sizeof record);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return start_outcome::pending;
  c.start.reset();
  if (size != sizeof record) return start_outcome::running;
  why = {static_cast<exec_stage>(record[0]), record[1]};
  return start_outcome::failed;
}

void signal_command(const command& c, int number) {
  // The foreground job first: when the session's leader ends, the job would be hung up before it hears the
  // signal.
  const pid_t foreground = c.has_terminal ? foreground_group(c.pid) : 0;
  if (foreground > 0 && foreground != c.pid) kill(-foreground, number);
  if (kill(-c.pid, number) != 0 && errno == ESRCH) kill(c.pid, number);  // it has not come to setsid yet
}

}  // namespace ccbox::init
