#include "support/tcp_peer.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace ccbox::test {

tcp_peer::tcp_peer(unique_fd fd) : fd_(std::move(fd)) {
  const timeval limit = {10, 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const int on = 1;
  ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

tcp_peer tcp_peer::connect(std::uint16_t port) {
  unique_fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in where = {};
  where.sin_family = AF_INET;
  where.sin_port = htons(port);
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0) fd.reset();
  return tcp_peer(std::move(fd));
}

bool tcp_peer::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

bool tcp_peer::send_byte_by_byte(std::string_view bytes) {
  for (const char& byte : bytes)
    if (!send({&byte, 1})) return false;
  return true;
}

void tcp_peer::half_close() {
  ::shutdown(fd_.get(), SHUT_WR);
}

void tcp_peer::reset() {
  // Whoever else holds the descriptor.
  sockaddr nowhere = {};
  nowhere.sa_family = AF_UNSPEC;
  ::connect(fd_.get(), &nowhere, sizeof nowhere);
  fd_.reset();
}

bool tcp_peer::fill() {
  char bytes[65536];
  ssize_t n = 0;
  do
    n = ::recv(fd_.get(), bytes, sizeof bytes, 0);
  while (n < 0 && errno == EINTR);
  if (n < 0 && errno == ECONNRESET) reset_ = true;
  if (n <= 0) return false;
  buffer_.append(bytes, static_cast<std::size_t>(n));
  return true;
}

std::string tcp_peer::read_until(std::string_view mark) {
  std::size_t at = buffer_.find(mark);
  while (at == buffer_.npos && fill())
    at = buffer_.find(mark);
  const auto length = at == buffer_.npos ? buffer_.size() : at + mark.size();
  const auto out = buffer_.substr(0, length);
  buffer_.erase(0, length);
  return out;
}

std::string tcp_peer::read_exactly(std::size_t bytes) {
  while (buffer_.size() < bytes && fill()) {
  }
  const auto out = buffer_.substr(0, bytes);
  buffer_.erase(0, out.size());
  return out;
}

std::string tcp_peer::read_all() {
  while (fill()) {
  }
  return std::exchange(buffer_, {});
}

bool tcp_peer::ends(std::chrono::milliseconds limit) {
  if (!buffer_.empty()) return false;
  pollfd one = {fd_.get(), POLLIN, 0};
  if (::poll(&one, 1, static_cast<int>(limit.count())) != 1) return false;
  return !fill();
}

bool tcp_peer::is_quiet() {
  char byte = 0;
  return buffer_.empty() && ::recv(fd_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

}  // namespace ccbox::test
