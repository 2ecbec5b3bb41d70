#include "trial.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "descriptor.hpp"
#include "small_file.hpp"
#include "trial_plan.hpp"

namespace ccbox::bubblewrap {

namespace {

// "inside outside count" lines of our own map, every id mapped to itself.
std::string identity_map(const char* path) {
  const auto own = read_small_file(path);
  std::string map;
  unsigned long inside = 0, outside = 0, count = 0;
  int used = 0;
  for (const char* at = own.c_str(); std::sscanf(at, "%lu %lu %lu%n", &inside, &outside, &count, &used) == 3;
       at += used)
    map += std::to_string(inside) + " " + std::to_string(inside) + " " + std::to_string(count) + "\n";
  return map;
}

bool write_map(pid_t pid, const char* name) {
  const auto map = identity_map((std::string("/proc/self/") + name).c_str());
  const descriptor fd(::open(("/proc/" + std::to_string(pid) + "/" + name).c_str(), O_WRONLY | O_CLOEXEC));
  return fd.get() >= 0 && ::write(fd.get(), map.data(), map.size()) == static_cast<ssize_t>(map.size());
}

// In the child of a process that may have threads: system calls only, nothing that allocates.
[[noreturn]] void become(const std::vector<std::pair<int, int>>& moves, char* const* argv, int error_fd,
                         int ready_fd, int go_fd) {
  const auto die = [](const char* text) {
    (void)!::write(STDERR_FILENO, text, std::strlen(text));
    ::_exit(1);
  };
  ::dup2(error_fd, STDERR_FILENO);
  // bwrap's child waits for its parent without a limit: killing them together is the only way to lose
  // neither. For the same reason there is no parent-death signal; left alone, `true` ends by itself.
  ::setsid();
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (ready_fd >= 0) {
    if (::unshare(CLONE_NEWUSER) != 0)
      die(errno == EPERM    ? "user namespace: Operation not permitted\n"
          : errno == ENOSPC ? "user namespace: max_*_namespaces exceeded\n"
                            : "user namespace: does not support user namespaces\n");
    char byte = 0;
    if (::write(ready_fd, &byte, 1) != 1 || ::read(go_fd, &byte, 1) != 1) ::_exit(1);
    if (byte != 'g') die("writing uid_map: Operation not permitted\n");
  }
  for (const auto& [from, to] : moves)
    if (::dup2(from, to) < 0) die("dup2 failed\n");
  ::syscall(SYS_close_range, static_cast<unsigned>(moves.back().second + 1), ~0U, 0U);
  char* const environment[] = {nullptr};
  ::execve(argv[0], argv, environment);
  die("cannot execute the launcher\n");
  ::_exit(127);
}

std::array<descriptor, 2> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail_trial("pipe");
  descriptor low_write(ends[1]);
  auto read_end = lifted(ends[0], "pipe");
  return {std::move(read_end), lifted(low_write.release(), "pipe")};
}

// Readable within the limit?
bool becomes_readable(int fd, std::chrono::steady_clock::time_point end) {
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    pollfd wait{fd, POLLIN, 0};
    const int ready = left > 0 ? ::poll(&wait, 1, static_cast<int>(left)) : 0;
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

void collect(int error_fd, pid_t pid, unsigned limit_ms, trial_outcome& outcome) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  const descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  std::array<char, 4096> buffer{};
  while (!outcome.timed_out) {
    outcome.timed_out = !becomes_readable(error_fd, end);
    const auto count = outcome.timed_out ? 0 : ::read(error_fd, buffer.data(), buffer.size());
    if (count <= 0) break;
    if (outcome.stderr_text.size() < 65536)
      outcome.stderr_text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  // Whoever closes its standard error may go on all the same.
  outcome.timed_out = outcome.timed_out || !process || !becomes_readable(process.get(), end);
  if (outcome.timed_out) ::kill(-pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  outcome.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  outcome.succeeded = !outcome.timed_out && outcome.code == 0;
}

bool tells_of_refusal(int socket) {
  std::array<char, 4096> packet{};
  const auto size = ::recv(socket, packet.data(), packet.size(), MSG_DONTWAIT);
  return size > 0 && std::string_view(packet.data(), static_cast<std::size_t>(size)).find(forbidden_glob) !=
                         std::string_view::npos;
}

// Of the host, for the time of one trial.
class scratch_directory {
 public:
  scratch_directory() {
    for (const char* place : {"/tmp", "/var/tmp", "/dev/shm"}) {
      path_ = std::string(place) + "/ccbox-trial.XXXXXX";
      if (::mkdtemp(path_.data())) return;
    }
    fail_trial("a directory to try name rules in, in /tmp, /var/tmp or /dev/shm");
  }
  ~scratch_directory() {
    for (const auto name : {ordinary_name, forbidden_name})
      ::unlink((path_ + "/" + std::string(name)).c_str());
    ::rmdir(path_.c_str());
  }
  scratch_directory(const scratch_directory&) = delete;
  scratch_directory& operator=(const scratch_directory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

trial_outcome start_trial(trial_plan plan, unsigned limit_ms) {
  std::vector<char*> argv;
  for (auto& word : plan.argv)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  const auto moves = plan.moves();
  auto errors = make_pipe(), ready = make_pipe(), go = make_pipe();
  // Not fork(): what others do after it, as the thread sanitizer starts a thread, is not for a child that
  // becomes bwrap.
  const pid_t pid = ::_Fork();
  if (pid < 0) fail_trial("fork");
  if (pid == 0) become(moves, argv.data(), errors[1].get(), plan.identity ? ready[1].get() : -1, go[0].get());
  for (auto* end : {&errors[1], &ready[1], &go[0]})
    end->close();
  if (plan.identity) {
    char byte = 0;
    if (::read(ready[0].get(), &byte, 1) == 1) {
      byte = write_map(pid, "uid_map") && write_map(pid, "gid_map") ? 'g' : 'n';
      (void)!::write(go[1].get(), &byte, 1);
    }
  }
  trial_outcome outcome;
  collect(errors[0].get(), pid, limit_ms, outcome);
  outcome.refusal_reported = plan.denials && tells_of_refusal(plan.denials.get());
  return outcome;
}

}  // namespace

trial_outcome try_enclosure(const host_facilities& host, unsigned limit_ms) {
  return start_trial(plan_enclosure_trial(host), limit_ms);
}

trial_outcome try_names(const host_facilities& host, std::string_view init_path, unsigned limit_ms) {
  const scratch_directory scratch;
  auto outcome = start_trial(plan_name_trial(host, init_path, scratch.path()), limit_ms);
  outcome.succeeded = outcome.succeeded && outcome.refusal_reported;
  return outcome;
}

}  // namespace ccbox::bubblewrap
