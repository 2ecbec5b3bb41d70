#include "proxy_pair.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "client_connection.hpp"

namespace ccbox::egress {
namespace {

plugin::failure refused(const std::string& text) {
  return {CCBOX_INVALID, text};
}

// Nothing for a Unix socket.
std::optional<destination> own_address(int fd) {
  sockaddr_storage where = {};
  socklen_t size = sizeof where;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&where), &size) != 0)
    throw refused(std::string("a listener is no socket: ") + std::strerror(errno));
  int listening = 0;
  size = sizeof listening;
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || listening == 0)
    throw refused("a listener is a socket that does not listen");
  destination out;
  if (where.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(where);
    out.host = ip_address::from_v4(ntohl(v4.sin_addr.s_addr));
    out.port = ntohs(v4.sin_port);
  } else if (where.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(where);
    ip_address address;
    std::memcpy(address.bytes.data(), &v6.sin6_addr, address.bytes.size());
    out.host = address;
    out.port = ntohs(v6.sin6_port);
  } else if (where.ss_family == AF_UNIX) {
    return std::nullopt;
  } else {
    throw refused("a listener is neither a TCP nor a Unix socket");
  }
  // Anything else would be an open proxy for the network.
  if (classify(out.address()) != address_class::loopback)
    throw refused("a listener is on " + authority_text(out) + ", which is not a loopback address");
  return out;
}

}  // namespace

proxy_pair::proxy_pair(worker& where, common_parts& common, std::shared_ptr<egress_session> session,
                       const std::vector<listener_request>& listeners)
    : worker_(where), common_(common), session_(std::move(session)), policy_(session_->share_policy()) {
  for (const auto& one : listeners)
    add(one);
  if (listeners.empty()) {
    for (const auto kind : {CCBOX_LISTENER_HTTP, CCBOX_LISTENER_SOCKS}) {
      const int fd = listener::listen_on_loopback();
      if (fd < 0)
        throw plugin::failure(CCBOX_FAILED, std::string("listening on 127.0.0.1: ") + std::strerror(errno));
      adopt_listener(static_cast<ccbox_listener_kind>(kind), fd, authority_text(*own_address(fd)));
    }
  }
  for (const auto kind : {CCBOX_LISTENER_HTTP, CCBOX_LISTENER_SOCKS})
    if (address_of(static_cast<ccbox_listener_kind>(kind)).empty())
      throw refused(kind == CCBOX_LISTENER_HTTP ? "there is no HTTP listener" : "there is no SOCKS listener");
}

proxy_pair::~proxy_pair() {
  close();
}

void proxy_pair::add(const listener_request& from) {
  if (from.kind != CCBOX_LISTENER_HTTP && from.kind != CCBOX_LISTENER_SOCKS)
    throw refused("a listener is of kind " + std::to_string(from.kind) + ", which this plugin does not know");
  const auto own = own_address(from.fd);
  if (!own && from.address.empty())
    throw refused("a Unix listener comes without the ip:port at which commands find it");
  const int fd = ::fcntl(from.fd, F_DUPFD_CLOEXEC, 3);
  if (fd < 0)
    throw plugin::failure(CCBOX_FAILED, std::string("duplicating a listener: ") + std::strerror(errno));
  adopt_listener(from.kind, fd, from.address.empty() ? authority_text(*own) : from.address);
}

void proxy_pair::adopt_listener(ccbox_listener_kind kind, int fd, std::string address) {
  own_.emplace_back(common_.listeners, fd);
  const auto session = session_;
  listener::callbacks then;
  then.has_room = [session] { return session->has_room(); };
  then.accepted = [session](stream_socket socket) {
    std::make_shared<client_connection>(session, std::move(socket))->start();
  };
  // The listener's parts belong to the worker's thread, also while they are made.
  std::exception_ptr failed;
  worker_.run([&] {
    try {
      listeners_.push_back(std::make_shared<listener>(worker_, fd, session_->settings().accept_pause,
                                                      common_.count, std::move(then)));
    } catch (...) {
      failed = std::current_exception();
    }
  });
  if (failed) std::rethrow_exception(failed);
  endpoints_.push_back({kind, std::move(address)});
}

void proxy_pair::open() {
  worker_.run([this] {
    session_->on_room([this] {
      for (const auto& one : listeners_)
        one->resume();
    });
    for (const auto& one : listeners_)
      one->start();
  });
}

void proxy_pair::close() {
  if (std::exchange(closed_, true)) return;
  worker_.run([this] {
    for (const auto& one : listeners_)
      one->close();
    listeners_.clear();
    session_->close();
    session_.reset();
  });
  own_.clear();
}

std::string proxy_pair::address_of(ccbox_listener_kind kind) const {
  std::string found;
  for (const auto& one : endpoints_) {
    if (one.kind != kind) continue;
    if (one.address.find('[') == one.address.npos) return one.address;
    if (found.empty()) found = one.address;
  }
  return found;
}

}  // namespace ccbox::egress
