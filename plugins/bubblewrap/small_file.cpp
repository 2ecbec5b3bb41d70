#include "small_file.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace ccbox::bubblewrap {

std::string read_small_file(const char* path) {
  constexpr std::size_t most = 64 << 10;
  std::string text;
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char block[4096];
  for (ssize_t count; text.size() < most && (count = ::read(fd, block, sizeof block)) > 0;)
    text.append(block, static_cast<std::size_t>(count));
  ::close(fd);
  return text;
}

}  // namespace ccbox::bubblewrap
