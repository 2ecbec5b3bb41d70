#include "loopback_listener.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <utility>

namespace ccbox {
namespace {

bool is_loopback_listener(const unique_fd& socket, int family, std::uint16_t port) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  int listening = 0;
  socklen_t option_size = sizeof listening;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) < 0 ||
      ::getsockopt(socket.get(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &option_size) < 0)
    return false;
  if (listening != 1 || address.ss_family != family) return false;
  if (family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return v4.sin_addr.s_addr == htonl(INADDR_LOOPBACK) && v4.sin_port == htons(port);
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) && v6.sin6_port == htons(port);
}

}  // namespace

std::optional<std::vector<loopback_listener>> take_listeners(const init::listening_message& m,
                                                             std::vector<unique_fd> descriptors) {
  if (descriptors.size() != m.descriptors()) return std::nullopt;
  std::vector<loopback_listener> made;
  auto next = descriptors.begin();
  for (const auto& port : m.ports) {
    loopback_listener listener{port.number, std::move(*next++), {}};
    if (port.has_v6) listener.v6 = std::move(*next++);
    if (!is_loopback_listener(listener.v4, AF_INET, port.number) ||
        (listener.v6 && !is_loopback_listener(listener.v6, AF_INET6, port.number)))
      return std::nullopt;
    made.push_back(std::move(listener));
  }
  return made;
}

}  // namespace ccbox
