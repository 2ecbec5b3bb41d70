#include "socks_connection.hpp"

#include "socks.hpp"

namespace ccbox::egress {
namespace {

constexpr decision malformed_bytes{false, denial_reason::malformed, nullptr};
constexpr decision too_many{false, denial_reason::limit, nullptr};

// True once there is a request; otherwise the client has had its answer.
task<bool> read_request(std::shared_ptr<client_connection> client, socks_parser& parser) {
  for (;;) {
    auto step = parser.feed(client->input());
    client->input().erase(0, step.consumed);
    if (step.now == socks_parser::state::refused) {
      if (!parser.offending_bytes().empty())
        client->session().denied(parser.version() == socks_version::v4 ? "socks4" : "socks5",
                                 parser.offending_bytes(), 0, malformed_bytes);
      co_await client->say_and_close(std::move(step.reply));
      co_return false;
    }
    const bool sent = co_await send_all(client->socket(), step.reply);
    if (!sent) co_return false;
    if (step.now == socks_parser::state::request) co_return true;
    if (!co_await client->read_more()) co_return false;
  }
}

}  // namespace

task<void> serve_socks(std::shared_ptr<client_connection> client) {
  auto& session = client->session();
  std::optional<std::string> password;
  if (session.token().required()) password = session.token().hex();
  socks_parser parser(std::move(password));
  if (!co_await read_request(client, parser)) co_return;

  const std::string protocol = parser.version() == socks_version::v4 ? "socks4" : "socks5";
  const auto to = parser.to();
  client->limit(std::chrono::milliseconds(0));
  if (!client->place().promote()) {
    session.denied(protocol, host_text(to), to.port, too_many);
    co_return co_await client->say_and_close(parser.reply(socks_reply::general_failure));
  }
  const auto decided = session.admit(protocol, to);
  if (!decided.allowed) co_return co_await client->say_and_close(parser.reply(socks_reply::not_allowed));
  auto outcome = co_await client->dial(to);
  if (const auto* failure = std::get_if<dial_failure>(&outcome)) {
    if (failure->what == dial_failure::kind::cancelled) co_return;
    session.not_reached(protocol, to, decided, *failure);
    co_return co_await client->say_and_close(parser.reply(failure->reply()));
  }
  auto& made = std::get<dialled>(outcome);
  if (!co_await send_all(client->socket(), parser.reply(socks_reply::succeeded))) co_return;
  client->become_tunnel(protocol, to, decided, {std::move(made.socket), std::move(made.early)});
}

}  // namespace ccbox::egress
