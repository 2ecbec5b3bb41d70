#include "support/server_client.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/json.hpp>
#include <cstring>

namespace ccbox::test {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

namespace {

constexpr std::chrono::seconds limit{30};
using stream = beast::basic_stream<asio::local::stream_protocol>;

// Runs one operation to its end.
template <class Start>
beast::error_code run(asio::io_context& io, Start start) {
  beast::error_code result = asio::error::would_block;
  start([&](beast::error_code e, auto...) { result = e; });
  io.restart();
  io.run();
  return result;
}

}  // namespace

std::string server_answer::header(const std::string& name) const {
  for (const auto& [known, value] : headers)
    if (beast::iequals(known, name)) return value;
  return "";
}

boost::json::value server_answer::json() const {
  boost::system::error_code bad;
  auto value = boost::json::parse(body, bad);
  return bad ? boost::json::value() : value;
}

server_answer server_client::ask(const std::string& method, const std::string& target,
                                 const std::string& body, const header_list& headers) const {
  asio::io_context io;
  stream to(io);
  to.expires_after(limit);
  server_answer out;
  if (run(io, [&](auto done) { to.async_connect(asio::local::stream_protocol::endpoint(socket_), done); }))
    return out;
  http::request<http::string_body> request;
  request.version(11);
  request.method_string(method);
  request.target(target);
  request.set(http::field::host, "localhost");
  request.keep_alive(false);
  for (const auto& [name, value] : headers)
    request.set(name, value);
  request.body() = body;
  request.prepare_payload();
  if (run(io, [&](auto done) { http::async_write(to, request, done); })) return out;
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(64 << 20);
  if (run(io, [&](auto done) { http::async_read(to, buffer, parser, done); })) return out;
  out.status = parser.get().result_int();
  for (const auto& field : parser.get())
    out.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  out.body = parser.get().body();
  return out;
}

std::string server_client::raw(const std::string& bytes) const {
  sockaddr_un where = {};
  where.sun_family = AF_UNIX;
  std::strncpy(where.sun_path, socket_.c_str(), sizeof where.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::string out;
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0) {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const auto count = ::send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) break;
      sent += static_cast<std::size_t>(count);
    }
    pollfd wait{fd, POLLIN, 0};
    char piece[65536];
    while (::poll(&wait, 1, static_cast<int>(std::chrono::milliseconds(limit).count())) > 0) {
      const auto count = ::recv(fd, piece, sizeof piece, 0);
      if (count <= 0) break;
      out.append(piece, static_cast<std::size_t>(count));
    }
  }
  ::close(fd);
  return out;
}

struct server_stream::impl {
  asio::io_context io;
  beast::websocket::stream<stream> ws{io};
  beast::flat_buffer buffer;
  unsigned status = 0;
  std::string refusal;
};

server_stream::server_stream(const std::string& socket, const std::string& target)
    : impl_(std::make_unique<impl>()) {
  auto& lower = beast::get_lowest_layer(impl_->ws);
  lower.expires_after(limit);
  if (run(impl_->io,
          [&](auto done) { lower.async_connect(asio::local::stream_protocol::endpoint(socket), done); }))
    return;
  http::response<http::string_body> answer;
  const auto failed =
      run(impl_->io, [&](auto done) { impl_->ws.async_handshake(answer, "localhost", target, done); });
  impl_->status = answer.result_int();
  if (failed) impl_->refusal = answer.body();
}

server_stream::~server_stream() = default;
server_stream::server_stream(server_stream&&) noexcept = default;

unsigned server_stream::status() const {
  return impl_->status;
}

const std::string& server_stream::refusal() const {
  return impl_->refusal;
}

bool server_stream::send_text(const std::string& text) {
  beast::get_lowest_layer(impl_->ws).expires_after(limit);
  impl_->ws.text(true);
  return !run(impl_->io, [&](auto done) { impl_->ws.async_write(asio::buffer(text), done); });
}

bool server_stream::send_binary(const std::string& bytes) {
  beast::get_lowest_layer(impl_->ws).expires_after(limit);
  impl_->ws.binary(true);
  return !run(impl_->io, [&](auto done) { impl_->ws.async_write(asio::buffer(bytes), done); });
}

std::optional<server_message> server_stream::receive() {
  beast::get_lowest_layer(impl_->ws).expires_after(limit);
  impl_->buffer.clear();
  if (run(impl_->io, [&](auto done) { impl_->ws.async_read(impl_->buffer, done); })) return std::nullopt;
  return server_message{impl_->ws.got_binary(), beast::buffers_to_string(impl_->buffer.data())};
}

unsigned server_stream::close_code() const {
  return impl_->ws.reason().code;
}

void server_stream::close() {
  beast::get_lowest_layer(impl_->ws).expires_after(limit);
  run(impl_->io, [&](auto done) { impl_->ws.async_close(beast::websocket::close_code::normal, done); });
}

void server_stream::vanish() {
  beast::get_lowest_layer(impl_->ws).close();
}

}  // namespace ccbox::test
