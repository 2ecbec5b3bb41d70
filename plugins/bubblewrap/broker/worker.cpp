#include "broker/worker.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <time.h>

#include <cerrno>
#include <utility>

#include "broker/naming.hpp"
#include "broker/renaming.hpp"

namespace ccbox::bubblewrap {

namespace {

constexpr std::size_t most_parked = 1024;

int as_int(std::uint64_t argument) {
  return static_cast<int>(argument);
}

// The path argument at `address`, relative to `directory_fd`. 0, or an errno.
int read_argument(const caller& who, int directory_fd, std::uint64_t address, path_argument& into) {
  into.directory_fd = directory_fd;
  return who.read_path(address, into.path);
}

// Flags that openat2 takes, and the older calls ignore everything else.
constexpr std::uint64_t known_flags = O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND |
                                      O_NONBLOCK | O_DSYNC | O_ASYNC | O_DIRECT | 0100000 /* O_LARGEFILE */ |
                                      O_NOFOLLOW | O_NOATIME | O_CLOEXEC | O_SYNC | O_PATH |
                                      O_TMPFILE /* O_DIRECTORY too */;

bool is_reading(std::uint64_t flags) {
  constexpr std::uint64_t writing = O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);
  return (flags & O_PATH) || (flags & writing) == 0;
}

// What openat2 is asked for. Done: to be opened by the broker.
outcome read_open_how(const caller& who, std::uint64_t address, std::uint64_t size, open_request& into) {
  constexpr std::uint64_t least = 24, most = 4096;
  if (size < least) return outcome::failure(EINVAL);
  if (size > most) return outcome::failure(E2BIG);
  std::vector<char> bytes(size);
  if (who.read_bytes(address, bytes.data(), size) != 0) return outcome::failure(EFAULT);
  for (std::size_t i = sizeof(open_how); i < size; ++i)
    if (bytes[i] != 0) return outcome::failure(E2BIG);
  open_how how{};
  __builtin_memcpy(&how, bytes.data(), sizeof how);
  // Those the kernel refuses by itself, or opens for reading; should the caller change its mind meanwhile,
  // the floor refuses what is more.
  constexpr std::uint64_t known_resolve = RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS |
                                          RESOLVE_BENEATH | RESOLVE_IN_ROOT | RESOLVE_CACHED;
  const bool makes = (how.flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) != 0;
  const bool two_roots = (how.resolve & RESOLVE_BENEATH) && (how.resolve & RESOLVE_IN_ROOT);
  if (two_roots || (how.flags & ~known_flags) || (how.resolve & ~known_resolve) || (how.mode & ~07777ull) ||
      (how.mode != 0 && !makes) || is_reading(how.flags))
    return outcome::kernel();
  if (how.mode & S_ISUID) return outcome::failure(EPERM);
  if (how.resolve & RESOLVE_CACHED) return outcome::failure(EAGAIN);
  into.flags = static_cast<int>(how.flags);
  into.mode = static_cast<mode_t>(how.mode);
  into.where.resolve = how.resolve;
  return {};
}

}  // namespace

void worker::run() {
  for (;;) {
    seccomp_notif call;
    if (!calls_.receive(call)) continue;
    const std::scoped_lock one_at_a_time(mutex_);
    answer(call);
  }
}

void worker::answer(std::uint64_t id, const outcome& with) const {
  switch (with.what) {
    case outcome::kind::done:
      return calls_.return_value(id, 0);
    case outcome::kind::failed:
      return calls_.return_error(id, with.error_number);
    case outcome::kind::for_the_kernel:
      return calls_.let_the_kernel_do(id);
  }
}

bool worker::open(const seccomp_notif& call, const caller& who, open_request asked) {
  opened_file opened;
  const auto result = open_file(desk_, who, asked, opened);
  if (opened.waits_for_reader && parked_.size() < most_parked) {
    asked.flags &= ~O_CREAT;  // it is there
    parked_.push_back({call.id, who.task(), std::move(asked)});
    parked_something_.notify_one();
    return false;
  }
  if (!result.is_done()) {
    answer(call.id, result);
    return true;
  }
  const int number = calls_.put_descriptor(call.id, opened.file.get(), (asked.flags & O_CLOEXEC) != 0);
  const int failure = errno;
  if (number < 0) take_back(opened);
  opened.file.close();
  if (number < 0)
    calls_.return_error(call.id, failure);
  else
    calls_.return_value(call.id, number);
  return true;
}

void worker::wait_for_readers() {
  std::unique_lock lock(mutex_);
  for (;;) {
    parked_something_.wait(lock, [&] { return !parked_.empty(); });
    lock.unlock();
    constexpr timespec between_looks{0, 3'000'000};
    ::nanosleep(&between_looks, nullptr);
    lock.lock();
    for (auto& each : std::exchange(parked_, {})) {
      if (!calls_.still_waits(each.id)) continue;
      seccomp_notif call{};
      call.id = each.id;
      open(call, caller(proc_, each.task), std::move(each.asked));
    }
  }
}

void worker::answer(const seccomp_notif& call) {
  const caller who(proc_, static_cast<pid_t>(call.pid));
  const auto* argument = call.data.args;
  open_request asked;
  int failure = 0;
  switch (call.data.nr) {
#ifdef SYS_open
    case SYS_open:
      asked.flags = as_int(argument[1]);
      asked.mode = static_cast<mode_t>(argument[2]);
      failure = read_argument(who, AT_FDCWD, argument[0], asked.where);
      break;
    case SYS_creat:
      asked.flags = O_CREAT | O_WRONLY | O_TRUNC;
      asked.mode = static_cast<mode_t>(argument[1]);
      failure = read_argument(who, AT_FDCWD, argument[0], asked.where);
      break;
#endif
    case SYS_openat:
      asked.flags = as_int(argument[2]);
      asked.mode = static_cast<mode_t>(argument[3]);
      failure = read_argument(who, as_int(argument[0]), argument[1], asked.where);
      break;
    case SYS_openat2: {
      const auto step = read_open_how(who, argument[2], argument[3], asked);
      if (!step.is_done()) return answer(call.id, step);
      failure = read_argument(who, as_int(argument[0]), argument[1], asked.where);
      break;
    }
    default:
      return answer(call.id, act(call, who));
  }
  if (failure != 0) return answer(call.id, outcome::failure(failure));
  asked.flags &= static_cast<int>(known_flags);
  asked.mode &= 07777;
  open(call, who, std::move(asked));
}

outcome worker::act(const seccomp_notif& call, const caller& who) {
  const auto* argument = call.data.args;
  path_argument first, second;
  int failure = 0;
  // Reads a path into `into`; an errno ends it all.
  const auto read = [&](path_argument& into, int directory_fd, std::uint64_t address) {
    if (failure == 0) failure = read_argument(who, directory_fd, address, into);
    return failure == 0;
  };
  const auto fd = [&](std::size_t i) { return as_int(argument[i]); };
  const auto mode = [&](std::size_t i) { return static_cast<mode_t>(argument[i] & 0xffff); };
  switch (call.data.nr) {
    case SYS_umask:
      desk_.forget_umasks();
      return outcome::kernel();
    case SYS_truncate:
      if (read(first, AT_FDCWD, argument[0]))
        return truncate_file(desk_, who, std::move(first), static_cast<off_t>(argument[1]));
      break;
    case SYS_mkdirat:
      if (read(first, fd(0), argument[1])) return make_directory(desk_, who, first, mode(2));
      break;
    case SYS_mknodat:
      if (read(first, fd(0), argument[1])) return make_node(desk_, who, first, mode(2), argument[3]);
      break;
    case SYS_symlinkat:
      if (read(second, AT_FDCWD, argument[0]) && read(first, fd(1), argument[2]))
        return make_symlink(desk_, who, first, second.path);
      break;
    case SYS_linkat:
      if (read(first, fd(0), argument[1]) && read(second, fd(2), argument[3]))
        return make_link(desk_, who, first, second, fd(4));
      break;
    case SYS_unlinkat:
      if (read(first, fd(0), argument[1])) return remove(desk_, who, first, fd(2));
      break;
    case SYS_renameat2:
      if (read(first, fd(0), argument[1]) && read(second, fd(2), argument[3]))
        return rename(desk_, who, first, second, static_cast<unsigned>(argument[4]));
      break;
#ifdef SYS_renameat
    case SYS_renameat:
      if (read(first, fd(0), argument[1]) && read(second, fd(2), argument[3]))
        return rename(desk_, who, first, second, 0);
      break;
#endif
#ifdef SYS_open  // the older forms of the same
    case SYS_mkdir:
      if (read(first, AT_FDCWD, argument[0])) return make_directory(desk_, who, first, mode(1));
      break;
    case SYS_mknod:
      if (read(first, AT_FDCWD, argument[0])) return make_node(desk_, who, first, mode(1), argument[2]);
      break;
    case SYS_symlink:
      if (read(second, AT_FDCWD, argument[0]) && read(first, AT_FDCWD, argument[1]))
        return make_symlink(desk_, who, first, second.path);
      break;
    case SYS_link:
      if (read(first, AT_FDCWD, argument[0]) && read(second, AT_FDCWD, argument[1]))
        return make_link(desk_, who, first, second, 0);
      break;
    case SYS_unlink:
      if (read(first, AT_FDCWD, argument[0])) return remove(desk_, who, first, 0);
      break;
    case SYS_rmdir:
      if (read(first, AT_FDCWD, argument[0])) return remove(desk_, who, first, AT_REMOVEDIR);
      break;
    case SYS_rename:
      if (read(first, AT_FDCWD, argument[0]) && read(second, AT_FDCWD, argument[1]))
        return rename(desk_, who, first, second, 0);
      break;
#endif
    default:
      return outcome::kernel();  // the floor stands under whatever the filter hands over by mistake
  }
  return outcome::failure(failure);
}

}  // namespace ccbox::bubblewrap
