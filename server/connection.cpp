#include "connection.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>

#include "log.hpp"

namespace ccbox::server {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;

namespace {

using stream = beast::basic_stream<asio::generic::stream_protocol>;
using incoming = http::request_parser<http::string_body>;
using outgoing = http::response<http::string_body>;

constexpr auto waiting = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::seconds silence{60};  // of a WebSocket whose peer does not even answer a ping

std::string_view view(beast::string_view text) {
  return {text.data(), text.size()};
}

std::optional<std::string_view> header(const http::request<http::string_body>& request, http::field name) {
  const auto at = request.find(name);
  if (at == request.end()) return std::nullopt;
  return view(at->value());
}

api_response plain_error(unsigned status, error_code code, std::string what, std::string hint = {}) {
  api_response out = error_response({code, std::move(what), std::move(hint)});
  out.status = status;
  return out;
}

// The answer to what is no request; nothing: the peer has gone, there is nobody to answer.
std::optional<api_response> answer_to(const beast::error_code& e, const http_limits& limits) {
  if (e == http::error::header_limit)
    return plain_error(431, error_code::too_large,
                       "the header is over " + std::to_string(limits.header_bytes) + " bytes");
  if (e == http::error::body_limit)
    return plain_error(413, error_code::too_large,
                       "the body is over " + std::to_string(limits.body_bytes) + " bytes");
  if (e == beast::error::timeout)
    return plain_error(408, error_code::timeout, "the request did not come in time");
  if (e == http::error::end_of_stream || e == http::error::partial_message ||
      e.category() != http::make_error_code(http::error::bad_method).category())
    return std::nullopt;
  return plain_error(400, error_code::invalid_argument, "not an HTTP request: " + e.message());
}

class beast_socket final : public message_socket {
 public:
  beast_socket(stream&& lower, const http_limits& limits) : ws_(std::move(lower)), limits_(limits) {
    websocket::stream_base::timeout patience;
    patience.handshake_timeout = limits.request_time;
    patience.idle_timeout = silence;
    patience.keep_alive_pings = true;
    ws_.set_option(patience);
    ws_.read_message_max(limits.message_bytes);
  }

  asio::awaitable<bool> accept(const http::request<http::string_body>& request) {
    beast::get_lowest_layer(ws_).expires_never();  // the WebSocket has its own
    const auto [failed] = co_await ws_.async_accept(request, waiting);
    co_return !failed;
  }

  asio::awaitable<std::optional<socket_message>> read() override {
    buffer_.clear();
    const auto [failed, bytes] = co_await ws_.async_read(buffer_, waiting);
    if (failed) co_return std::nullopt;
    socket_message out{ws_.got_binary(), beast::buffers_to_string(buffer_.data())};
    co_return out;
  }

  asio::awaitable<bool> write(std::string data, bool binary) override {
    using namespace asio::experimental::awaitable_operators;
    asio::steady_timer limit(ws_.get_executor(), limits_.write_time);
    ws_.binary(binary);
    const auto done = co_await (ws_.async_write(asio::buffer(data), waiting) || limit.async_wait(waiting));
    const bool written = done.index() == 0 && !std::get<0>(std::get<0>(done));
    if (!written) abort();
    co_return written;
  }

  asio::awaitable<void> close(unsigned code, std::string reason) override {
    using namespace asio::experimental::awaitable_operators;
    websocket::close_reason why(static_cast<websocket::close_code>(code));
    why.reason = reason.substr(0, why.reason.max_size());
    asio::steady_timer limit(ws_.get_executor(), std::chrono::seconds(2));
    [[maybe_unused]] const auto done = co_await (ws_.async_close(why, waiting) || limit.async_wait(waiting));
    abort();
  }

  void abort() override { beast::get_lowest_layer(ws_).close(); }

 private:
  websocket::stream<stream> ws_;
  const http_limits& limits_;
  beast::flat_buffer buffer_;
};

class client final : public connection {
 public:
  client(asio::generic::stream_protocol::socket socket, bool by_tcp, connection_context& shared)
      : stream_(std::move(socket)), by_tcp_(by_tcp), shared_(shared) {}

  asio::awaitable<void> run() override {
    bool first = true;
    while (!closed_ && (first || !shared_.stopping)) {
      incoming parser;
      parser.header_limit(static_cast<std::uint32_t>(shared_.limits.header_bytes));
      parser.body_limit(shared_.limits.body_bytes);
      if (!first) {
        const bool more = co_await more_to_read();
        if (!more) break;
      }
      first = false;
      busy_ = true;
      const bool go_on = co_await one_request(parser);
      busy_ = false;
      if (!go_on) break;
    }
    beast::error_code ignored;
    if (stream_.socket().is_open()) stream_.socket().shutdown(asio::socket_base::shutdown_send, ignored);
    stream_.close();
  }

  void close() override {
    closed_ = true;
    stream_.close();
    if (const auto socket = web_socket_.lock()) socket->abort();
  }
  void close_if_idle() override {
    if (!busy_) close();
  }

 private:
  // Waits between requests, for longer than within one.
  asio::awaitable<bool> more_to_read() {
    if (buffer_.size() > 0) co_return true;
    stream_.expires_after(shared_.limits.idle_time);
    const auto [failed, bytes] = co_await stream_.async_read_some(buffer_.prepare(4096), waiting);
    if (failed) co_return false;
    buffer_.commit(bytes);
    co_return true;
  }

  // True: the connection may carry another one.
  asio::awaitable<bool> one_request(incoming& parser) {
    stream_.expires_after(shared_.limits.request_time);
    {
      const auto [failed, bytes] = co_await http::async_read_header(stream_, buffer_, parser, waiting);
      if (failed) co_return co_await refuse(answer_to(failed, shared_.limits));
    }
    ++shared_.counters.requests;
    const auto& head = parser.get();
    if (auto bad = objection(head)) co_return co_await refuse(std::move(bad));
    if (const auto expected = header(head, http::field::expect);
        expected && beast::iequals(*expected, "100-continue")) {
      http::response<http::empty_body> go_on(http::status::continue_, 11);
      const auto [failed, bytes] = co_await http::async_write(stream_, go_on, waiting);
      if (failed) co_return false;
    }
    {
      const auto [failed, bytes] = co_await http::async_read(stream_, buffer_, parser, waiting);
      if (failed) co_return co_await refuse(answer_to(failed, shared_.limits));
    }
    stream_.expires_never();
    const bool keep = head.keep_alive() && !shared_.stopping;
    auto found = shared_.routes.find(view(head.method_string()), view(head.target()));
    if (!found) co_return co_await send(error_response(found.error()), keep);
    if (!found->found) co_return co_await send(wrong_method(*found), keep);
    found->request.body = std::move(parser.get().body());
    if (found->found->upgrade) co_return co_await upgrade(*found, parser.get());
    api_response answer;
    try {
      answer = co_await found->found->answer(found->request);
    } catch (const std::exception& e) {
      log_event(log_level::error, "request_handler", {{"path", found->request.path}, {"what", e.what()}});
      answer = plain_error(500, error_code::failed, "internal error", "the server's log has more");
    }
    co_return co_await send(std::move(answer), keep);
  }

  // Why a request is not even looked at.
  std::optional<api_response> objection(const http::request<http::string_body>& head) {
    if (!shared_.admit()) {
      auto out = plain_error(429, error_code::too_large, "too many requests", "wait a second");
      out.headers.emplace_back("Retry-After", "1");
      return out;
    }
    if (head.count(http::field::host) > 1 || head.count(http::field::origin) > 1 ||
        head.count(http::field::authorization) > 1)
      return plain_error(400, error_code::invalid_argument, "a header that may be there once is there twice");
    const caller who{by_tcp_, header(head, http::field::host).value_or(""), header(head, http::field::origin),
                     header(head, http::field::authorization)};
    auto allowed = may_ask(shared_.access, who);
    if (allowed) return std::nullopt;
    auto out = error_response(allowed.error());
    // Whoever names the wrong machine learns nothing of tokens.
    return out;
  }

  static api_response wrong_method(const router::match& found) {
    std::string list;
    for (const auto& method : found.allowed)
      list += (list.empty() ? "" : ", ") + method;
    auto out =
        plain_error(405, error_code::invalid_argument,
                    quoted(found.request.method) + " is not possible on " + quoted(found.request.path), list);
    out.headers.emplace_back("Allow", list);
    return out;
  }

  asio::awaitable<bool> refuse(std::optional<api_response> answer) {
    if (!answer) co_return false;
    stream_.expires_after(shared_.limits.write_time);
    [[maybe_unused]] const bool sent = co_await send(std::move(*answer), false);
    co_return false;
  }

  asio::awaitable<bool> send(api_response answer, bool keep) {
    if (answer.status >= 400) ++shared_.counters.failed_requests;
    outgoing out(static_cast<http::status>(answer.status), 11);
    if (!answer.content_type.empty()) out.set(http::field::content_type, answer.content_type);
    out.set(http::field::cache_control, "no-store");
    for (const auto& [name, value] : answer.headers)
      out.set(name, value);
    out.keep_alive(keep);
    out.body() = std::move(answer.body);
    out.prepare_payload();
    stream_.expires_after(shared_.limits.write_time);
    const auto [failed, bytes] = co_await http::async_write(stream_, out, waiting);
    co_return !failed && keep;
  }

  asio::awaitable<bool> upgrade(const router::match& found, const http::request<http::string_body>& request) {
    if (!websocket::is_upgrade(request)) {
      auto out = plain_error(426, error_code::invalid_argument,
                             quoted(found.request.path) + " is a WebSocket", "ask with Upgrade: websocket");
      out.headers.emplace_back("Upgrade", "websocket");
      co_return co_await send(std::move(out), false);
    }
    auto handler = co_await found.found->upgrade(found.request);
    if (!handler) co_return co_await send(error_response(handler.error()), false);
    const auto socket = std::make_shared<beast_socket>(std::move(stream_), shared_.limits);
    web_socket_ = socket;
    if (closed_) co_return false;
    const bool accepted = co_await socket->accept(request);
    if (!accepted) co_return false;
    try {
      co_await (*handler)(*socket);
    } catch (const std::exception& e) {
      log_event(log_level::error, "socket_handler", {{"path", found.request.path}, {"what", e.what()}});
      socket->abort();
    }
    co_return false;
  }

  stream stream_;
  const bool by_tcp_;
  connection_context& shared_;
  beast::flat_buffer buffer_{1 << 20};
  std::weak_ptr<beast_socket> web_socket_;
  bool busy_ = true, closed_ = false;
};

}  // namespace

bool connection_context::admit() {
  const auto now = std::chrono::steady_clock::now();
  const double passed = std::chrono::duration<double>(now - filled).count();
  filled = now;
  allowance = std::min(static_cast<double>(limits.burst),
                       allowance + passed * static_cast<double>(limits.requests_per_second));
  if (allowance < 1) return false;
  allowance -= 1;
  return true;
}

std::shared_ptr<connection> connection::make(asio::generic::stream_protocol::socket socket, bool by_tcp,
                                             connection_context& shared) {
  return std::make_shared<client>(std::move(socket), by_tcp, shared);
}

}  // namespace ccbox::server
