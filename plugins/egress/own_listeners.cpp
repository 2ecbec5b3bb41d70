#include "own_listeners.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <utility>

namespace ccbox::egress {
namespace {

bool is_elsewhere(int fd) {
  std::uint64_t its = 0, ours = 0;
  socklen_t size = sizeof its;
  if (::getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &its, &size) != 0) return false;
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  size = sizeof ours;
  const bool known = probe >= 0 && ::getsockopt(probe, SOL_SOCKET, SO_NETNS_COOKIE, &ours, &size) == 0;
  if (probe >= 0) ::close(probe);
  return known && its != ours;
}

ip_address reached(const ip_address& address) {
  const bool v4 = address.is_v4();
  if (v4 && address.v4() >> 24 == 0) return ip_address::from_v4(INADDR_LOOPBACK);
  if (address == ip_address{}) {
    ip_address loopback;
    loopback.bytes[15] = 1;
    return loopback;
  }
  return address;
}

}  // namespace

own_listeners::entry::entry(own_listeners& all, int listening_fd) {
  sockaddr_storage where = {};
  socklen_t size = sizeof where;
  if (::getsockname(listening_fd, reinterpret_cast<sockaddr*>(&where), &size) != 0) return;
  if (where.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(where);
    address_ = ip_address::from_v4(ntohl(v4.sin_addr.s_addr));
    port_ = ntohs(v4.sin_port);
  } else if (where.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(where);
    std::memcpy(address_.bytes.data(), &v6.sin6_addr, 16);
    port_ = ntohs(v6.sin6_port);
  } else {
    return;
  }
  if (is_elsewhere(listening_fd)) return;
  const std::unique_lock lock(all.mutex_);
  all.addresses_.emplace(port_, address_);
  all_ = &all;
}

own_listeners::entry::entry(entry&& other) noexcept
    : all_(std::exchange(other.all_, nullptr)), port_(other.port_), address_(other.address_) {}

own_listeners::entry& own_listeners::entry::operator=(entry&& other) noexcept {
  std::swap(all_, other.all_);
  std::swap(port_, other.port_);
  std::swap(address_, other.address_);
  return *this;
}

own_listeners::entry::~entry() {
  if (!all_) return;
  const std::unique_lock lock(all_->mutex_);
  const auto [first, last] = all_->addresses_.equal_range(port_);
  for (auto at = first; at != last; ++at) {
    if (at->second != address_) continue;
    all_->addresses_.erase(at);
    return;
  }
}

bool own_listeners::contains(const ip_address& address, std::uint16_t port) const {
  const auto target = reached(address);
  const std::shared_lock lock(mutex_);
  const auto [first, last] = addresses_.equal_range(port);
  for (auto at = first; at != last; ++at)
    if (reached(at->second) == target || at->second == ip_address{} || at->second == ip_address::from_v4(0))
      return true;
  return false;
}

}  // namespace ccbox::egress
