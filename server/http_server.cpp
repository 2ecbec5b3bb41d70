#include "http_server.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <list>
#include <optional>

#include "connection.hpp"
#include "log.hpp"

namespace ccbox::server {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::milliseconds pause_without_descriptors{100};

bool is_ours(int fd) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == ::geteuid() || peer.uid == 0);
}

class listening_socket {
 public:
  virtual ~listening_socket() = default;
  virtual asio::awaitable<std::optional<asio::generic::stream_protocol::socket>> accept(
      boost::system::error_code& e) = 0;
  virtual void close() = 0;
  virtual bool by_tcp() const = 0;
};

template <class Protocol>
class acceptor_of final : public listening_socket {
 public:
  acceptor_of(const asio::any_io_executor& executor, const Protocol& protocol, unique_fd fd)
      : acceptor_(executor, protocol, fd.release()) {}
  asio::awaitable<std::optional<asio::generic::stream_protocol::socket>> accept(
      boost::system::error_code& e) override {
    auto [failed, socket] = co_await acceptor_.async_accept(asio::as_tuple(asio::use_awaitable));
    e = failed;
    if (failed) co_return std::nullopt;
    co_return asio::generic::stream_protocol::socket(std::move(socket));
  }
  void close() override {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
  }
  bool by_tcp() const override { return !std::is_same_v<Protocol, asio::local::stream_protocol>; }

 private:
  asio::basic_socket_acceptor<Protocol> acceptor_;
};

}  // namespace

struct http_server::impl : std::enable_shared_from_this<impl> {
  impl(asio::any_io_executor e, const router& r, access_rules a, http_limits l)
      : executor(std::move(e)), shared{r, std::move(a), l} {}

  const asio::any_io_executor executor;
  connection_context shared;
  std::list<std::shared_ptr<listening_socket>> listening;
  std::list<std::shared_ptr<connection>> open;

  static asio::awaitable<void> accept_all(std::shared_ptr<impl> self,
                                          std::shared_ptr<listening_socket> from) {
    asio::steady_timer pause(self->executor);
    while (!self->shared.stopping) {
      boost::system::error_code e;
      auto socket = co_await from->accept(e);
      if (socket) {
        self->take(std::move(*socket), from->by_tcp());
      } else if (e == asio::error::operation_aborted || e == asio::error::bad_descriptor) {
        co_return;
      } else {
        // Out of descriptors, or the peer has gone again.
        pause.expires_after(pause_without_descriptors);
        co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
      }
    }
  }

  void take(asio::generic::stream_protocol::socket socket, bool by_tcp) {
    ++shared.counters.accepted;
    if ((!by_tcp && !is_ours(socket.native_handle())) || open.size() >= shared.limits.connections) {
      ++shared.counters.refused;
      return;
    }
    open.push_back(connection::make(std::move(socket), by_tcp, shared));
    const auto at = std::prev(open.end());
    asio::co_spawn(executor, (*at)->run(), [self = shared_from_this(), at](std::exception_ptr failure) {
      if (failure) log_event(log_level::error, "connection_coroutine");
      self->open.erase(at);
    });
  }
};

http_server::http_server(asio::any_io_executor executor, const router& routes, access_rules rules,
                         http_limits limits)
    : impl_(std::make_shared<impl>(std::move(executor), routes, std::move(rules), limits)) {}

http_server::~http_server() {
  stop_accepting();
  close_all();
}

result<void> http_server::serve(unique_fd fd) {
  sockaddr_storage where = {};
  socklen_t size = sizeof where;
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&where), &size) != 0)
    return system_error("getsockname", "", errno);
  std::shared_ptr<listening_socket> made;
  if (where.ss_family == AF_UNIX)
    made = std::make_shared<acceptor_of<asio::local::stream_protocol>>(
        impl_->executor, asio::local::stream_protocol(), std::move(fd));
  else if (where.ss_family == AF_INET || where.ss_family == AF_INET6)
    made = std::make_shared<acceptor_of<asio::ip::tcp>>(
        impl_->executor, where.ss_family == AF_INET ? asio::ip::tcp::v4() : asio::ip::tcp::v6(),
        std::move(fd));
  else
    return error{error_code::invalid_argument, "a listening socket of an address family that is not served",
                 ""};
  impl_->listening.push_back(made);
  asio::co_spawn(impl_->executor, impl::accept_all(impl_, made), asio::detached);
  return {};
}

void http_server::stop_accepting() {
  impl_->shared.stopping = true;
  for (const auto& each : impl_->listening)
    each->close();
  impl_->listening.clear();
  for (const auto& each : impl_->open)
    each->close_if_idle();
}

void http_server::close_all() {
  for (const auto& each : impl_->open)
    each->close();
}

std::size_t http_server::open_connections() const {
  return impl_->open.size();
}

const http_counters& http_server::counters() const {
  return impl_->shared.counters;
}

}  // namespace ccbox::server
