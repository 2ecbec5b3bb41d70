#include "broker/host_proc.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace ccbox::bubblewrap {

namespace {

using short_path = std::array<char, 48>;

short_path of_task(pid_t task, const char* rest) {
  short_path path;
  char* at = std::to_chars(path.data(), path.data() + path.size(), task).ptr;
  *at++ = '/';
  ::strncpy(at, rest, static_cast<std::size_t>(path.data() + path.size() - at));
  path.back() = '\0';
  return path;
}

std::string text_of_link(int directory, const char* link) {
  std::array<char, 4096> text;
  const auto size = ::readlinkat(directory, link, text.data(), text.size());
  return size <= 0 || size == static_cast<ssize_t>(text.size())
             ? std::string()
             : std::string(text.data(), static_cast<std::size_t>(size));
}

}  // namespace

host_proc::host_proc()
    : all_(::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC)),
      own_descriptors_(::open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC)) {}

descriptor host_proc::follow(pid_t task, const char* link) const {
  return descriptor(::openat(all_.get(), of_task(task, link).data(), O_PATH | O_CLOEXEC));
}

std::string host_proc::link_text(pid_t task, const char* link) const {
  return text_of_link(all_.get(), of_task(task, link).data());
}

std::string host_proc::file(pid_t task, const char* name) const {
  const descriptor from(::openat(all_.get(), of_task(task, name).data(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> text;
  const auto size = from ? ::read(from.get(), text.data(), text.size()) : 0;
  return size <= 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(size));
}

bool host_proc::learn_mounts() {
  const descriptor from(::openat(all_.get(), "self/mountinfo", O_RDONLY | O_CLOEXEC));
  if (!from) return false;
  std::string text;
  std::array<char, 4096> piece;
  ssize_t size = 0;
  while ((size = ::read(from.get(), piece.data(), piece.size())) > 0)
    text.append(piece.data(), static_cast<std::size_t>(size));
  // Each line begins with the mount's number.
  for (std::size_t at = 0; at < text.size();) {
    mounts_.insert(std::strtoull(text.c_str() + at, nullptr, 10));
    const auto end = text.find('\n', at);
    at = end == text.npos ? end : end + 1;
  }
  return size == 0 && !mounts_.empty();
}

std::string host_proc::path_of(int fd) const {
  struct statx status;
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &status) != 0 || !(status.stx_mask & STATX_MNT_ID) ||
      !mounts_.contains(status.stx_mnt_id))
    return "(outside)";
  std::array<char, 16> number{};
  std::to_chars(number.data(), number.data() + number.size() - 1, fd);
  return text_of_link(own_descriptors_.get(), number.data());
}

std::optional<std::string> host_proc::path_of_directory(int fd) const {
  // What has no way up to our root, the kernel calls "(unreachable)...": it is on no mount of the
  // enclosure's. That is the test of path_of() and its answer in one, at half the price.
  std::array<char, PATH_MAX> text;
  if (::fchdir(fd) != 0) {
    if (errno == ENOTDIR) return std::nullopt;
    return path_of(fd);  // one that may not be searched has a path all the same
  }
  const long size = ::syscall(SYS_getcwd, text.data(), text.size());
  if (size <= 1) return path_of(fd);  // removed, or too long
  return std::string(text.data(), static_cast<std::size_t>(size - 1));
}

}  // namespace ccbox::bubblewrap
