// Listening sockets on the loopback of the namespace that this process is in.
#pragma once

#include <cstdint>

#include "../unique_fd.hpp"

namespace ccbox::init {

struct loopback_port {
  std::uint16_t number = 0;  // the system's choice, the same for both
  unique_fd v4;              // 127.0.0.1
  unique_fd v6;              // ::1; not open where there is no IPv6
};

// Both listen when this returns and are not inherited by commands. 0, or the errno that says why not.
int open_loopback_port(loopback_port& into);

}  // namespace ccbox::init
