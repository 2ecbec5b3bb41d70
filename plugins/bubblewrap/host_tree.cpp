#include "host_tree.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace ccbox::bubblewrap {

// By looks, from the root on: a plan opens nothing of the host.
node_type real_host_tree::type(const std::string& path) const {
  struct stat status {};
  for (std::size_t end = 0; end < path.size();) {
    end = std::min(path.find('/', end + 1), path.size());
    if (::lstat(path.substr(0, end).c_str(), &status) != 0) return node_type::missing;
    if (S_ISLNK(status.st_mode)) return node_type::linked;
  }
  return S_ISDIR(status.st_mode) ? node_type::directory : node_type::other;
}

std::optional<std::string> real_host_tree::link_text(const std::string& path) const {
  std::array<char, 4096> text{};
  const auto length = ::readlink(path.c_str(), text.data(), text.size());
  if (length <= 0 || static_cast<std::size_t>(length) == text.size()) return std::nullopt;
  return std::string(text.data(), static_cast<std::size_t>(length));
}

}  // namespace ccbox::bubblewrap
