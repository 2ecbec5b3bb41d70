// A TCP socket that listens on a free port of 127.0.0.1 for a test's server.
#pragma once

#include <cstdint>

#include "unique_fd.hpp"

namespace ccbox::test {

struct listening_socket {
  explicit listening_socket(int backlog = 4096);  // throws where there is none
  unique_fd fd;
  std::uint16_t port = 0;
};

}  // namespace ccbox::test
