#include "support/pipe.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

namespace ccbox::test {

pipe_ends make_pipe() {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  return {unique_fd(ends[0]), unique_fd(ends[1])};
}

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = ::read(fd, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  return text;
}

}  // namespace ccbox::test
