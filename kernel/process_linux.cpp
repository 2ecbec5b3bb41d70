#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/memfd.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <memory>

#include "id_map.hpp"
#include "os.hpp"
#include "process.hpp"

// Between clone and exec the child runs in our memory on a stack of its own, and shares our thread's
// thread-local storage: it makes raw system calls only, and no instrumentation may take it for the thread
// that waits for it.
#define CCBOX_IN_CHILD __attribute__((no_sanitize("address", "thread", "undefined")))

// clone(2)'s wrapper under the name that the thread sanitizer does not replace: its own takes the child for a
// fork.
extern "C" int __clone(int (*function)(void*), void* stack, int flags, void* argument, ...);

namespace ccbox {
namespace {

constexpr std::size_t stack_bytes = 64 << 10;

struct descriptor_move {
  int source, target;
};

struct limit_setting {
  int resource;
  rlimit64 value;
};

enum class step { none, session, parent_death, id_map, mounts, cgroup, limit, descriptors, signals, exec };

// All that the child needs, made by the parent; `failed_at` and `error_number` are the child's answer.
struct child_plan {
  pid_t parent = 0;
  bool new_session = false, outlives_parent = false;
  int id_map_socket = -1;
  std::vector<int> cgroup_files;
  std::vector<limit_setting> limits;
  std::vector<descriptor_move> moves;
  std::vector<std::pair<unsigned, unsigned>> gaps;  // numbers that no descriptor of the child has
  int first_free = 0;                               // above every target
  char* const* argv = nullptr;
  char* const* env = nullptr;

  volatile step failed_at = step::none;
  volatile int error_number = 0;
  volatile std::size_t index = 0;  // of the cgroup, limit or descriptor
};

CCBOX_IN_CHILD bool fail(child_plan& p, step at, std::size_t index = 0) {
  p.failed_at = at;
  p.error_number = errno;
  p.index = index;
  return false;
}

// Waits until the parent's helper has written the id maps of the namespace we were born into.
CCBOX_IN_CHILD bool await_id_map(child_plan& p) {
  const pid_t self = static_cast<pid_t>(os::call(SYS_getpid));
  int answer = 0;
  if (os::call(SYS_write, p.id_map_socket, &self, sizeof self) != sizeof self) return fail(p, step::id_map);
  if (os::call(SYS_read, p.id_map_socket, &answer, sizeof answer) != sizeof answer) {
    return fail(p, step::id_map);
  }
  errno = answer;
  return answer == 0 || fail(p, step::id_map);
}

// Of the mount namespace that we were born into, before anybody binds something from it.
// Private: what the host mounts later would come through into directories that are bound, without nosuid and
// nodev.
// /dev read-only: the device files that an enclosure shows are the host's own inodes, and who is root there
// could give them another mode, owner or time; reading and writing a device does not ask for that. Containers
// bind each device, hence all below too.
CCBOX_IN_CHILD bool restrict_mounts(child_plan& p) {
  mount_attr read_only{MOUNT_ATTR_RDONLY, 0, 0, 0};
  if (os::call(SYS_mount, nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0 ||
      os::call(SYS_mount, "/dev", "/dev", nullptr, MS_BIND | MS_REC, nullptr) < 0 ||
      os::call(SYS_mount_setattr, AT_FDCWD, "/dev", AT_RECURSIVE, &read_only, sizeof read_only) < 0)
    return fail(p, step::mounts);
  return true;
}

// Sources first go above every target, so that no target overwrites a source that is still needed.
CCBOX_IN_CHILD bool place_descriptors(child_plan& p) {
  for (std::size_t i = 0; i < p.moves.size(); ++i) {
    const long copy = os::call(SYS_fcntl, p.moves[i].source, F_DUPFD_CLOEXEC, p.first_free);
    if (copy < 0) return fail(p, step::descriptors, i);
    p.moves[i].source = static_cast<int>(copy);
  }
  for (std::size_t i = 0; i < p.moves.size(); ++i) {
    if (os::call(SYS_dup3, p.moves[i].source, p.moves[i].target, 0) < 0) return fail(p, step::descriptors, i);
  }
  for (const auto& [first, last] : p.gaps) {
    if (os::call(SYS_close_range, first, last, CLOSE_RANGE_CLOEXEC) < 0) return fail(p, step::descriptors);
  }
  return true;
}

// Caught signals are reset by exec, but ignored ones and the mask would pass to the child. A handler must not
// run in our memory either, so everything is reset before anything is unblocked.
CCBOX_IN_CHILD bool reset_signals(child_plan& p) {
  const unsigned long default_action[8] =
      {};  // struct sigaction of the kernel: at most this large, SIG_DFL is 0
  constexpr std::size_t mask_bytes = 8;
  for (int number = 1; number < 65; ++number) {
    if (number == SIGKILL || number == SIGSTOP) continue;
    if (os::call(SYS_rt_sigaction, number, default_action, nullptr, mask_bytes) < 0) {
      return fail(p, step::signals);
    }
  }
  const unsigned long nothing = 0;
  if (os::call(SYS_rt_sigprocmask, SIG_SETMASK, &nothing, nullptr, mask_bytes) < 0)
    return fail(p, step::signals);
  return true;
}

CCBOX_IN_CHILD bool prepare_child(child_plan& p) {
  if (p.new_session && os::call(SYS_setsid) < 0) return fail(p, step::session);
  // Until exec it dies with the parent in any case: it must not wait for the id map of one that is gone.
  if (os::call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL) < 0) return fail(p, step::parent_death);
  errno = ESRCH;  // the parent died before it could matter to us
  if (os::call(SYS_getppid) != p.parent) return fail(p, step::parent_death);
  if (p.id_map_socket >= 0 && !(await_id_map(p) && restrict_mounts(p))) return false;
  for (std::size_t i = 0; i < p.cgroup_files.size(); ++i) {
    if (os::call(SYS_write, p.cgroup_files[i], "0", 1) != 1) return fail(p, step::cgroup, i);
  }
  for (std::size_t i = 0; i < p.limits.size(); ++i) {
    if (os::call(SYS_prlimit64, 0, p.limits[i].resource, &p.limits[i].value, nullptr) < 0) {
      return fail(p, step::limit, i);
    }
  }
  if (!place_descriptors(p) || !reset_signals(p)) return false;
  return !p.outlives_parent || os::call(SYS_prctl, PR_SET_PDEATHSIG, 0) == 0 || fail(p, step::parent_death);
}

CCBOX_IN_CHILD int child_main(void* argument) {
  child_plan& p = *static_cast<child_plan*>(argument);
  if (prepare_child(p)) {
    os::call(SYS_execve, p.argv[0], p.argv, p.env);
    fail(p, step::exec);
  }
  for (;;)
    ::syscall(SYS_exit_group, 127);
}

// Blocks every signal of this thread, the C library's own ones too, for as long as it lives.
class signal_block {
 public:
  signal_block() {
    const unsigned long all = ~0ul;
    ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before_, sizeof before_);
  }
  signal_block(const signal_block&) = delete;
  signal_block& operator=(const signal_block&) = delete;
  ~signal_block() { ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_); }

 private:
  unsigned long before_ = 0;
};

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  out.reserve(strings.size() + 1);
  for (std::string& s : strings)
    out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

bool has_nul(const std::string& s) {
  return s.find('\0') != std::string::npos;
}

result<void> check(const spawn_request& request) {
  if (request.argv.empty() || request.argv[0].empty() || request.argv[0][0] != '/') {
    return error{error_code::invalid_argument, "spawn: the program must be an absolute path", ""};
  }
  for (const std::string& argument : request.argv) {
    if (has_nul(argument)) return error{error_code::invalid_argument, "spawn: NUL in an argument", ""};
  }
  for (const auto& [name, value] : request.env) {
    if (name.empty() || name.find('=') != std::string::npos || has_nul(name) || has_nul(value)) {
      return error{error_code::invalid_argument, "spawn: malformed environment variable " + quoted(name), ""};
    }
  }
  for (auto a = request.descriptors.begin(); a != request.descriptors.end(); ++a) {
    const bool twice =
        std::any_of(request.descriptors.begin(), a, [&](auto& b) { return b.second == a->second; });
    if (a->first < 0 || a->second < 0 || twice) {
      return error{error_code::invalid_argument,
                   "spawn: descriptor " + std::to_string(a->second) + " is given twice or not open", ""};
    }
  }
  return {};
}

void plan_gaps(child_plan& p) {
  std::vector<unsigned> targets;
  for (const descriptor_move& m : p.moves)
    targets.push_back(static_cast<unsigned>(m.target));
  std::sort(targets.begin(), targets.end());
  unsigned next = 0;
  for (unsigned t : targets) {
    if (t > next) p.gaps.emplace_back(next, t - 1);
    next = t + 1;
  }
  p.gaps.emplace_back(next, ~0u);
  p.first_free = static_cast<int>(next);
}

error child_error(const child_plan& p, const spawn_request& request) {
  const std::size_t i = p.index;
  const std::string& program = request.argv[0];
  switch (p.failed_at) {
    case step::session:
      return system_error("setsid for", program, p.error_number);
    case step::parent_death:
      return system_error("die-with-parent for", program, p.error_number);
    case step::id_map:
      return system_error("id map of the user namespace for", program, p.error_number,
                          p.error_number == EPERM || p.error_number == EACCES
                              ? "root needs CAP_SETUID, CAP_SETGID and CAP_SETFCAP here"
                              : "");
    case step::mounts:
      return system_error("private mounts and a read-only /dev for", program, p.error_number,
                          p.error_number == ENOSYS ? "a root caller needs Linux 5.12 or later" : "");
    case step::cgroup:
      return system_error("join cgroup", request.cgroup_directories[i], p.error_number);
    case step::limit:
      return system_error("set limit " + std::to_string(p.limits[i].resource) + " for", program,
                          p.error_number);
    case step::descriptors:
      return system_error("place descriptors for", program, p.error_number);
    case step::signals:
      return system_error("reset signals for", program, p.error_number);
    default:
      return system_error("exec", program, p.error_number);
  }
}

// EINTR cannot happen with every signal blocked, but does to callers of wait().
long wait_for(int pidfd, siginfo_t& info, int options) {
  for (;;) {
    const long r = ::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd), &info, options);
    if (r == 0 || errno != EINTR) return r;
  }
}

exit_status status_of(const siginfo_t& info) {
  return {info.si_code != CLD_EXITED, info.si_status};
}

}  // namespace

result<child> spawn(const spawn_request& request) {
  if (auto ok = check(request); !ok) return ok.error();

  child_plan p;
  p.parent = ::getpid();
  p.new_session = request.new_session;
  p.outlives_parent = request.outlives_parent;

  std::vector<unique_fd> ours;
  for (const std::string& directory : request.cgroup_directories) {
    const std::string file = directory + "/cgroup.procs";
    ours.emplace_back(
        static_cast<int>(os::call(SYS_openat, AT_FDCWD, file.c_str(), O_WRONLY | O_CLOEXEC, 0)));
    if (!ours.back()) return system_error("open", file, errno);
    p.cgroup_files.push_back(ours.back().get());
  }
  for (const auto& [resource, value] : request.rlimits) {
    limit_setting l{resource, {}};
    if (os::call(SYS_prlimit64, 0, resource, nullptr, &l.value) < 0) {
      return system_error("get limit " + std::to_string(resource), "", errno);
    }
    l.value.rlim_max = std::min<rlim64_t>(l.value.rlim_max, value);
    l.value.rlim_cur = l.value.rlim_max;
    p.limits.push_back(l);
  }
  unique_fd null;
  for (const auto& [source, target] : request.descriptors)
    p.moves.push_back({source, target});
  for (int target = 0; target < 3; ++target) {
    if (std::any_of(p.moves.begin(), p.moves.end(), [&](auto& m) { return m.target == target; })) continue;
    if (!null) {
      null.reset(static_cast<int>(os::call(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0)));
      if (!null) return system_error("open", "/dev/null", errno);
    }
    p.moves.push_back({null.get(), target});
  }
  plan_gaps(p);

  std::vector<std::string> argv = request.argv, env;
  env.reserve(request.env.size());
  for (const auto& [name, value] : request.env)
    env.push_back(name + "=" + value);
  const std::vector<char*> argv_pointers = pointers(argv), env_pointers = pointers(env);
  p.argv = argv_pointers.data();
  p.env = env_pointers.data();

  // On the heap: the child's frames are few and small, and the address sanitizer knows this memory as clean.
  const std::unique_ptr<char[]> stack(new char[stack_bytes]);
  char* const stack_top = stack.get() + stack_bytes;

  int flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD;
  int pidfd = -1;
  pid_t pid = -1;
  int clone_error = 0;
  {
    signal_block blocked;
    std::unique_ptr<id_map_writer> maps;
    if (request.identity_userns) {
      auto started = id_map_writer::start();
      if (!started) return started.error();
      maps = std::move(*started);
      p.id_map_socket = maps->child_end();
      flags |= CLONE_NEWUSER | CLONE_NEWNS;
    }
    long answer = 0;
    if (os::intercepted(SYS_clone, {flags, 0, 0, 0, 0, 0}, answer)) {
      clone_error = static_cast<int>(-answer);
    } else {
      pid = ::__clone(child_main, stack_top, flags, &p, &pidfd);
      clone_error = pid < 0 ? errno : 0;
    }
  }
  if (pid < 0)
    return system_error(request.identity_userns ? "clone with a user namespace" : "clone", "", clone_error,
                        clone_error == EAGAIN
                            ? "no further process may be made: raise `ulimit -u`, or pids.max of the "
                              "cgroup that this runs in, or end some processes of this user"
                            : "");
  child c(pid, unique_fd(pidfd));
  if (p.failed_at != step::none) return child_error(p, request);  // ~child reaps
  return c;
}

child::child(child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      status_(std::exchange(other.status_, {})) {}

child& child::operator=(child&& other) noexcept {
  if (this == &other) return *this;
  child old(std::move(*this));
  pid_ = std::exchange(other.pid_, -1);
  pidfd_ = std::move(other.pidfd_);
  status_ = std::exchange(other.status_, {});
  return *this;
}

child::~child() {
  if (!pidfd_ || status_) return;
  [[maybe_unused]] const auto ignored = signal(SIGKILL);
  siginfo_t info{};
  wait_for(pidfd_.get(), info, WEXITED);
}

result<void> child::signal(int number) const {
  if (status_) return error{error_code::not_found, "the process has ended", ""};
  if (::syscall(SYS_pidfd_send_signal, pidfd_.get(), number, nullptr, 0) < 0) {
    return system_error("pidfd_send_signal to process " + std::to_string(pid_), "", errno);
  }
  return {};
}

std::optional<exit_status> child::try_wait() {
  if (status_) return status_;
  siginfo_t info{};
  if (wait_for(pidfd_.get(), info, WEXITED | WNOHANG) < 0) {
    if (errno == ECHILD) status_ = exit_status{false, 255};
  } else if (info.si_pid != 0) {
    status_ = status_of(info);
  }
  return status_;
}

result<exit_status> child::wait() {
  if (status_) return *status_;
  siginfo_t info{};
  if (wait_for(pidfd_.get(), info, WEXITED) == 0) {
    status_ = status_of(info);
  } else if (errno == ECHILD) {
    status_ = exit_status{false, 255};
  } else {
    return system_error("waitid for process " + std::to_string(pid_), "", errno);
  }
  return *status_;
}

result<unique_fd> memory_file(const std::string& name, memory_use use) {
  constexpr unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  // MFD_EXEC and MFD_NOEXEC_SEAL, since Linux 6.3
  const unsigned executable = use == memory_use::program ? 0x0010u : 0x0008u;
  unique_fd fd(static_cast<int>(os::call(SYS_memfd_create, name.c_str(), flags | executable)));
  if (!fd && errno == EINVAL) fd.reset(static_cast<int>(os::call(SYS_memfd_create, name.c_str(), flags)));
  if (!fd) return system_error("memfd_create", name, errno);
  return fd;
}

namespace {

// For good, and back to its beginning.
result<void> seal(int fd, const std::string& name) {
  if (os::call(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
    return system_error("seal", name, errno);
  if (os::call(SYS_lseek, fd, 0, SEEK_SET) < 0) return system_error("lseek", name, errno);
  return {};
}

}  // namespace

result<unique_fd> sealed_file(const std::string& name, std::string_view bytes) {
  auto fd = memory_file(name);
  if (!fd) return fd;
  for (std::size_t done = 0; done < bytes.size();) {
    const long n = os::call(SYS_write, fd->get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return system_error("write", name, n < 0 ? errno : EIO);
    done += static_cast<std::size_t>(n);
  }
  if (auto done = seal(fd->get(), name); !done) return done.error();
  return fd;
}

result<unique_fd> sealed_copy(const std::string& name, int source, std::size_t most, memory_use use) {
  auto fd = memory_file(name, use);
  if (!fd) return fd;
  for (std::size_t done = 0; done < most;) {
    const long n = os::call(SYS_sendfile, fd->get(), source, nullptr, most - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("copy", name, errno);
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  if (use == memory_use::program && os::call(SYS_fchmod, fd->get(), 0555) < 0)
    return system_error("chmod", name, errno);
  if (auto done = seal(fd->get(), name); !done) return done.error();
  return fd;
}

}  // namespace ccbox
