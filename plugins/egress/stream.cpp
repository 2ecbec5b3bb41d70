#include "stream.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace ccbox::egress {

bool adopt(stream_socket& into, int fd) {
  int family = AF_INET;
  socklen_t size = sizeof family;
  ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size);
  boost::system::error_code failed;
  into.assign(asio::generic::stream_protocol(family, 0), fd, failed);
  if (failed) ::close(fd);
  return !failed;
}

std::ptrdiff_t send_now(int fd, std::string_view text) {
  std::ptrdiff_t n = 0;
  do
    n = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  return n;
}

std::ptrdiff_t receive_now(int fd, char* into, std::size_t capacity) {
  std::ptrdiff_t n = 0;
  do
    n = ::recv(fd, into, capacity, MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  return n;
}

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK;
}

liveness look(int fd) {
  char byte = 0;
  std::ptrdiff_t n = 0;
  do
    n = ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  if (n > 0) return liveness::has_data;
  if (n == 0) return liveness::ended;
  return would_block(errno) ? liveness::idle : liveness::broken;
}

void reset_on_close(int fd) {
  const linger at_once = {1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void set_stream_options(int fd) {
  const int on = 1, idle_s = 60, most_unsent = static_cast<int>(most_unsent_bytes);
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  ::setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most_unsent, sizeof most_unsent);
}

void bound_unread(int fd) {
  const int most = static_cast<int>(most_unread_bytes);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &most, sizeof most);
}

task<bool> send_all(stream_socket& socket, std::string_view text) {
  while (!text.empty()) {
    if (!socket.is_open()) co_return false;
    const auto n = send_now(socket.native_handle(), text);
    if (n < 0 && !would_block(errno)) co_return false;
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
    if (text.empty()) break;
    const auto [failed] = co_await socket.async_wait(asio::socket_base::wait_write, no_throw);
    if (failed) co_return false;
  }
  co_return true;
}

task<bool> send_copied(stream_socket& socket, std::string_view text) {
  const auto n = socket.is_open() ? send_now(socket.native_handle(), text) : -1;
  if (n == static_cast<std::ptrdiff_t>(text.size())) co_return true;
  if (n < 0 && (!socket.is_open() || !would_block(errno))) co_return false;
  const std::string rest(text.substr(static_cast<std::size_t>(n < 0 ? 0 : n)));
  co_return co_await send_all(socket, rest);
}

}  // namespace ccbox::egress
