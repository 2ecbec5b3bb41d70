#include "host_tree.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace ccbox::bubblewrap {

node_type real_host_tree::type(const std::string& path) const {
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;
  const auto fd = static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how));
  if (fd < 0) return errno == ELOOP ? node_type::linked : node_type::missing;
  struct stat status {};
  const bool known = ::fstat(fd, &status) == 0;
  ::close(fd);
  if (!known) return node_type::missing;
  if (S_ISLNK(status.st_mode)) return node_type::linked;
  return S_ISDIR(status.st_mode) ? node_type::directory : node_type::other;
}

std::optional<std::string> real_host_tree::link_text(const std::string& path) const {
  std::array<char, 4096> text{};
  const auto length = ::readlink(path.c_str(), text.data(), text.size());
  if (length <= 0 || static_cast<std::size_t>(length) == text.size()) return std::nullopt;
  return std::string(text.data(), static_cast<std::size_t>(length));
}

}  // namespace ccbox::bubblewrap
