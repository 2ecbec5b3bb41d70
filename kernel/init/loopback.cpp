#include "loopback.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace ccbox::init {
namespace {

// A burst of a package installer opens hundreds of connections at once.
constexpr int backlog = 4096;
// A port that is free for one family may be taken for the other.
constexpr int most_attempts = 32;

int listen_v4(unique_fd& into, std::uint16_t& port) {
  into.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!into) return errno;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(into.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(into.get(), backlog) != 0 ||
      getsockname(into.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return errno;
  port = ntohs(address.sin_port);
  return 0;
}

int listen_v6(unique_fd& into, std::uint16_t port) {
  into.reset(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!into) return errno;
  const int only = 1;
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  address.sin6_port = htons(port);
  if (setsockopt(into.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only) != 0 ||
      bind(into.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(into.get(), backlog) != 0)
    return errno;
  return 0;
}

bool means_no_v6(int error_number) {
  return error_number == EAFNOSUPPORT || error_number == EADDRNOTAVAIL || error_number == EPROTONOSUPPORT;
}

}  // namespace

int open_loopback_port(loopback_port& into) {
  int failure = 0;
  for (int i = 0; i < most_attempts; ++i) {
    loopback_port made;
    failure = listen_v4(made.v4, made.number);
    if (failure != 0) return failure;
    failure = listen_v6(made.v6, made.number);
    if (means_no_v6(failure)) {
      made.v6.reset();
      failure = 0;
    }
    if (failure == 0) {
      into = std::move(made);
      return 0;
    }
    if (failure != EADDRINUSE) return failure;
  }
  return failure;
}

}  // namespace ccbox::init
