#include "client_connection.hpp"

#include <sys/socket.h>

#include <boost/asio/co_spawn.hpp>

#include "http_connection.hpp"
#include "socks_connection.hpp"

namespace ccbox::egress {
namespace {

constexpr std::size_t read_bytes = 4096, most_drained = 64 * 1024;

task<void> serve(std::shared_ptr<client_connection> client) {
  client->limit(client->session().settings().head_timeout);
  if (!co_await client->read_more()) co_return;
  const char first = client->input().front();
  if (first == 4 || first == 5)
    co_await serve_socks(client);
  else
    co_await serve_http(client);
}

}  // namespace

client_connection::client_connection(std::shared_ptr<egress_session> session, stream_socket socket)
    : session_(std::move(session)),
      socket_(std::move(socket)),
      place_(session_),
      limit_(session_->io().deadlines(), [this] {
        const auto self = shared_from_this();
        late_ = true;
        boost::system::error_code ignored;
        socket_.cancel(ignored);
        if (origin_) origin_->close(ignored);
        if (dialling_) dialling_->cancel();
      }) {
  session_->join(*this);
}

void client_connection::start() {
  // What is thrown is a want of memory: the connection is over, its destructor closes it.
  asio::co_spawn(session_->io().executor(), serve(shared_from_this()),
                 [self = shared_from_this()](std::exception_ptr) {});
}

void client_connection::abort() {
  const auto self = shared_from_this();
  gone_ = true;
  boost::system::error_code ignored;
  socket_.close(ignored);
  if (origin_) origin_->close(ignored);
  if (dialling_) dialling_->cancel();
}

void client_connection::limit(std::chrono::milliseconds in) {
  late_ = false;
  if (in.count() == 0)
    limit_.clear();
  else
    limit_.after(in);
}

task<bool> client_connection::read_more() {
  if (gone_ || late_) co_return false;
  const auto had = input_.size();
  input_.resize(had + read_bytes);
  const auto [stopped, length] =
      co_await socket_.async_read_some(asio::buffer(input_.data() + had, read_bytes), no_throw);
  input_.resize(had + (stopped ? 0 : length));
  if (stopped && stopped != asio::error::operation_aborted && stopped != asio::error::eof) gone_ = true;
  co_return !stopped && !gone_;
}

task<void> client_connection::say_and_close(std::string last_words) {
  unwatch();
  limit(session_->settings().drain_limit);
  if (co_await send_all(socket_, last_words)) {
    ::shutdown(socket_.native_handle(), SHUT_WR);
    std::size_t drained = 0;
    while (drained < most_drained && !late_) {
      input_.clear();
      if (!co_await read_more()) break;
      drained += input_.size();
    }
  }
  boost::system::error_code ignored;
  socket_.close(ignored);
  limit(std::chrono::milliseconds(0));
  gone_ = true;
}

task<dial_outcome> client_connection::dial(destination to) {
  dialling_ = std::make_shared<dial_scope>();
  // A client that ends before anything has begun, and has sent nothing to pass on, wants no connection.
  watch(std::chrono::milliseconds(0));
  auto outcome = co_await session_->way_out().dial(std::move(to), dialling_);
  unwatch();
  dialling_.reset();
  if (gone_) co_return dial_failure{dial_failure::kind::cancelled, {}};
  auto* made = std::get_if<dialled>(&outcome);
  if (made && session_->is_crowded()) bound_unread(made->socket.native_handle());
  co_return outcome;
}

void client_connection::watch(std::chrono::milliseconds after_end) {
  if (gone_) return;
  after_end_ = after_end;
  watching_ = true;
  socket_.async_wait(asio::socket_base::wait_read,
                     [self = shared_from_this(), mine = ++watch_](boost::system::error_code stopped) {
                       if (!stopped && self->watching_ && self->watch_ == mine) self->client_moved();
                     });
}

void client_connection::unwatch() {
  if (!std::exchange(watching_, false)) return;
  boost::system::error_code ignored;
  socket_.cancel(ignored);
}

void client_connection::client_moved() {
  switch (look(socket_.native_handle())) {
    case liveness::idle:
      return watch(after_end_);
    case liveness::has_data:  // the next request, or early data
      return;
    case liveness::ended:
      if (after_end_.count() > 0) return limit(after_end_);
      if (input_.empty()) abort();
      return;
    case liveness::broken:
      return abort();
  }
}

void client_connection::become_tunnel(std::string protocol, destination to, decision by,
                                      tunnel::side origin) {
  limit(std::chrono::milliseconds(0));
  origin_.reset();
  gone_ = true;
  session_->start_tunnel(std::move(place_), std::move(protocol), std::move(to), by,
                         {std::move(socket_), std::move(input_)}, std::move(origin));
}

}  // namespace ccbox::egress
