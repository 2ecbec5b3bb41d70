// A port inside an enclosure that this process accepts on.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "init/protocol.hpp"
#include "unique_fd.hpp"

namespace ccbox {

// One port of the enclosure's own loopback, open for whoever is inside; accept on it from here.
struct loopback_listener {
  std::uint16_t port = 0;
  unique_fd v4;  // 127.0.0.1
  unique_fd v6;  // ::1; not open where there is no IPv6
};

// What ccbox-init has answered. Nothing if the descriptors are not the sockets that it speaks of: the
// session's proxies are going to serve whoever connects to them.
std::optional<std::vector<loopback_listener>> take_listeners(const init::listening_message& m,
                                                             std::vector<unique_fd> descriptors);

}  // namespace ccbox
