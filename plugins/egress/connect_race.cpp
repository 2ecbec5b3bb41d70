#include "connect_race.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ccbox::egress {
namespace {

// The families in turn, beginning with the first address's.
std::vector<ip_address> in_turn(const std::vector<ip_address>& from) {
  std::vector<ip_address> first, second, out;
  for (const auto& one : from)
    (one.is_v4() == from.front().is_v4() ? first : second).push_back(one);
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    if (i < first.size()) out.push_back(first[i]);
    if (i < second.size()) out.push_back(second[i]);
  }
  out.resize(std::min(out.size(), connect_race::most_addresses));
  return out;
}

}  // namespace

int connect_race::begin_tcp(const ip_address& address, std::uint16_t port) {
  sockaddr_storage where = {};
  socklen_t size = 0;
  if (address.is_v4()) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(where);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    v4.sin_addr.s_addr = htonl(address.v4());
    size = sizeof v4;
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(where);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    std::memcpy(&v6.sin6_addr, address.bytes.data(), 16);
    size = sizeof v6;
  }
  const int fd = ::socket(where.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  set_stream_options(fd);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&where), size) == 0 || errno == EINPROGRESS) return fd;
  const int code = errno;
  ::close(fd);
  errno = code;
  return -1;
}

connect_race::connect_race(worker& where, std::vector<ip_address> addresses, std::uint16_t port, limits l,
                           beginning begin)
    : worker_(where),
      addresses_(in_turn(addresses)),
      port_(port),
      limits_(l),
      begin_(std::move(begin)),
      stagger_(where.deadlines(), [this] { try_next(); }),
      total_(where.deadlines(), [this] {
        const auto self = shared_from_this();
        finish(dial_failure{dial_failure::kind::timed_out, {}});
      }) {}

void connect_race::start(eventual<dial_outcome> result) {
  result_ = std::move(result);
  total_.after(limits_.total);
  try_next();
}

void connect_race::cancel() {
  const auto self = shared_from_this();
  finish(dial_failure{dial_failure::kind::cancelled, {}});
}

void connect_race::try_next() {
  const auto self = shared_from_this();
  while (result_ && tried_ < addresses_.size()) {
    const int fd = begin_(addresses_[tried_++], port_);
    if (fd < 0) {
      attempt_failed(errno);
      continue;
    }
    auto& socket = attempts_.emplace_back(worker_.executor());
    if (!adopt(socket, fd)) {
      attempt_failed(ENOMEM);
      continue;
    }
    ++open_;
    // Writable or broken says how it went; at once where the peer is on this host.
    socket.async_wait(asio::socket_base::wait_write,
                      [self, attempt = attempts_.size() - 1](boost::system::error_code stopped) {
                        self->connected(attempt, stopped);
                      });
    if (tried_ < addresses_.size()) stagger_.after(limits_.attempt_delay);
    return;
  }
  if (result_ && open_ == 0) finish(dial_failure{worst_, {}});
}

void connect_race::connected(std::size_t attempt, boost::system::error_code stopped) {
  if (!result_) return;
  auto& socket = attempts_[attempt];
  int code = stopped ? ECANCELED : 0;
  socklen_t size = sizeof code;
  if (!stopped && ::getsockopt(socket.native_handle(), SOL_SOCKET, SO_ERROR, &code, &size) != 0) code = errno;
  if (code == 0) return finish(dialled{std::move(socket), {}});
  --open_;
  boost::system::error_code ignored;
  socket.close(ignored);
  attempt_failed(code);
  try_next();
}

void connect_race::attempt_failed(int code) {
  const auto what = failure_of_errno(code);
  // A host that answered says more than a family that this host lacks.
  if (!any_failed_ || worst_ == dial_failure::kind::network_unreachable) worst_ = what;
  any_failed_ = true;
}

void connect_race::finish(dial_outcome outcome) {
  if (!result_) return;
  const auto result = *std::exchange(result_, std::nullopt);
  stagger_.clear();
  total_.clear();
  for (auto& socket : attempts_) {
    boost::system::error_code ignored;
    socket.close(ignored);
  }
  result.set(std::move(outcome));
}

}  // namespace ccbox::egress
