#include "broker/caller.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace ccbox::bubblewrap {

namespace {

constexpr std::size_t page_bytes = 4096, usual_bytes = 256;

std::int64_t now_ms() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

// The rest of the line that begins with `name`, without leading space.
std::string_view field(std::string_view status, std::string_view name) {
  for (std::size_t at = 0; at < status.size();) {
    auto line = status.substr(at, status.find('\n', at) - at);
    at += line.size() + 1;
    if (!line.starts_with(name)) continue;
    line.remove_prefix(name.size());
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    return line;
  }
  return {};
}

// What is open, where /proc/N/fd is closed even to whoever may trace: the task has made itself undumpable.
descriptor taken_from(pid_t task, int number) {
  descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, task, 0)));
  constexpr unsigned a_thread = O_EXCL;  // PIDFD_THREAD, since Linux 6.9
  if (!process) process = descriptor(static_cast<int>(::syscall(SYS_pidfd_open, task, a_thread)));
  return descriptor(process ? static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), number, 0)) : -1);
}

int last_number(std::string_view text) {
  const auto space = text.find_last_of(" \t");
  return std::atoi(std::string(space == text.npos ? text : text.substr(space + 1)).c_str());
}

}  // namespace

int caller::read_bytes(std::uint64_t address, void* into, std::size_t size) const {
  const iovec here{into, size};
  const iovec there{reinterpret_cast<void*>(address), size};
  return ::process_vm_readv(task_, &here, 1, &there, 1, 0) == static_cast<ssize_t>(size) ? 0 : EFAULT;
}

int caller::read_path(std::uint64_t address, std::string& path) const {
  std::array<char, PATH_MAX> text;
  std::size_t size = 0;
  while (size < text.size()) {
    // Never over the edge of a page: what ends before an unmapped one is a string all the same. Few paths are
    // as long as a page, so the first piece is a short one.
    const auto most = std::min({page_bytes - (address + size) % page_bytes, text.size() - size,
                                size == 0 ? usual_bytes : text.size()});
    if (read_bytes(address + size, text.data() + size, most) != 0) return EFAULT;
    if (const void* end = std::memchr(text.data() + size, '\0', most)) {
      path.assign(text.data(), static_cast<std::size_t>(static_cast<const char*>(end) - text.data()));
      return 0;
    }
    size += most;
  }
  return ENAMETOOLONG;
}

descriptor caller::base(int directory_fd) const {
  return directory_fd == AT_FDCWD ? proc_.follow(task_, "cwd") : descriptor_number(directory_fd);
}

descriptor caller::descriptor_number(int number) const {
  if (number < 0) {
    errno = EBADF;
    return descriptor();
  }
  std::array<char, 16> link{'f', 'd', '/'};
  std::to_chars(link.data() + 3, link.data() + link.size() - 1, number);
  auto found = proc_.follow(task_, link.data());
  if (!found && errno == EACCES) found = taken_from(task_, number);
  if (!found) errno = EBADF;
  return found;
}

inner_ids caller::ids() const {
  const auto status = proc_.file(task_, "status");
  return {last_number(field(status, "NStgid:")), last_number(field(status, "NSpid:"))};
}

std::string caller::program() const {
  return proc_.link_text(task_, "exe");
}

mode_t umask_memory::of(const caller& who) {
  auto& known = entries_[static_cast<std::size_t>(who.task()) % slots];
  const auto now = now_ms();
  if (known.task == who.task() && now < known.until_ms) return known.mask;
  const auto status = who.proc().file(who.task(), "status");
  const auto mask =
      static_cast<mode_t>(std::strtoul(std::string(field(status, "Umask:")).c_str(), nullptr, 8) & 0777);
  constexpr int lifetime_ms = 20;
  known = {who.task(), mask, now < quiet_until_ms_ ? 0 : now + lifetime_ms};
  return mask;
}

void umask_memory::forget() {
  constexpr int setting_takes_at_most_ms = 100;
  for (auto& known : entries_)
    known = {};
  quiet_until_ms_ = now_ms() + setting_takes_at_most_ms;
}

}  // namespace ccbox::bubblewrap
