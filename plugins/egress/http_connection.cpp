#include "http_connection.hpp"

#include <boost/system/error_code.hpp>

#include "http_exchange.hpp"
#include "request_head.hpp"

namespace ccbox::egress {
namespace {

constexpr decision malformed_bytes{false, denial_reason::malformed, nullptr};
constexpr decision too_many{false, denial_reason::limit, nullptr};
constexpr std::size_t most_target_shown = 256;

std::string_view phrase(unsigned status) {
  switch (status) {
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 407:
      return "Proxy Authentication Required";
    case 408:
      return "Request Timeout";
    case 414:
      return "URI Too Long";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Error";
  }
}

// The request target as sent, for the report of a head that is no request.
std::string_view target_of(std::string_view bytes) {
  auto line = bytes.substr(0, bytes.find_first_of("\r\n"));
  const auto space = line.find(' ');
  if (space != line.npos) line.remove_prefix(space + 1);
  return line.substr(0, std::min(line.find(' '), most_target_shown));
}

bool looks_like_no_http(const std::string& input) {
  const auto first = static_cast<unsigned char>(input.front());
  return (first < 0x21 && first != '\r' && first != '\n') || first > 0x7e;
}

struct head_bytes {
  std::size_t length = 0;  // 0: there is none, and the client has had its answer if one is due
};

task<head_bytes> read_head(std::shared_ptr<client_connection> client) {
  std::size_t scanned = 0;
  auto& input = client->input();
  for (;;) {
    if (!input.empty()) {
      std::variant<std::size_t, http_error> found =
          looks_like_no_http(input)
              ? http_error{400, "this port speaks HTTP and SOCKS; reach https:// sites by CONNECT"}
              : find_head_end(input, scanned);
      if (const auto* bad = std::get_if<http_error>(&found)) {
        client->session().denied("http", target_of(input), 0, malformed_bytes);
        co_await client->say_and_close(http_refusal(bad->status, "malformed", bad->why));
        co_return head_bytes{};
      }
      if (const auto length = std::get<std::size_t>(found); length > 0) co_return head_bytes{length};
    }
    const bool more = co_await client->read_more();
    if (more) continue;
    // Between two requests there is nobody to tell.
    if (client->late() && !input.empty())
      co_await client->say_and_close(http_refusal(408, "timeout", "the request did not arrive in time"));
    co_return head_bytes{};
  }
}

// True: allowed. Otherwise the client has had its answer.
task<bool> admit(std::shared_ptr<client_connection> client, const request_head& request,
                 std::string_view protocol, decision& decided) {
  auto& session = client->session();
  if (!session.token().accepts(request.proxy_authorization.value_or(""))) {
    auto answer =
        http_refusal(407, "authentication", "this session's proxy needs the token of its environment");
    co_await client->say_and_close(for_method(request.method, std::move(answer)));
    co_return false;
  }
  if (!client->place().promote()) {
    session.denied(protocol, host_text(request.to), request.to.port, too_many);
    const auto line =
        std::to_string(session.settings().max_tunnels) +
        " connections of this session are open, which is its limit; try again when some have ended";
    co_await client->say_and_close(for_method(request.method, http_refusal(429, "limit", line)));
    co_return false;
  }
  decided = session.admit(protocol, request.to);
  if (decided.allowed) co_return true;
  const auto line = session.policy().explain(request.to, decided);
  co_await client->say_and_close(
      for_method(request.method, http_refusal(403, to_string(decided.reason), line)));
  co_return false;
}

task<void> connect(std::shared_ptr<client_connection> client, request_head request, decision decided) {
  auto& session = client->session();
  auto outcome = co_await client->dial(request.to);
  if (const auto* failure = std::get_if<dial_failure>(&outcome)) {
    if (failure->what == dial_failure::kind::cancelled) co_return;
    session.not_reached("connect", request.to, decided, *failure);
    co_return co_await client->say_and_close(http_refusal(request.to, *failure, session.policy()));
  }
  auto& made = std::get<dialled>(outcome);
  if (!co_await send_all(client->socket(), "HTTP/1.1 200 Connection established\r\n\r\n")) co_return;
  client->become_tunnel("connect", std::move(request.to), decided,
                        {std::move(made.socket), std::move(made.early)});
}

}  // namespace

task<void> serve_http(std::shared_ptr<client_connection> client) {
  auto& session = client->session();
  for (;;) {
    const auto head = co_await read_head(client);
    if (head.length == 0) co_return;
    client->limit(std::chrono::milliseconds(0));
    auto parsed_head = parse_request_head(std::string_view(client->input()).substr(0, head.length));
    if (const auto* bad = std::get_if<http_error>(&parsed_head)) {
      session.denied("http", target_of(client->input()), 0, malformed_bytes);
      co_return co_await client->say_and_close(http_refusal(bad->status, "malformed", bad->why));
    }
    client->input().erase(0, head.length);
    auto& request = std::get<request_head>(parsed_head);
    decision decided;
    if (!co_await admit(client, request, request.connect ? "connect" : "http", decided)) co_return;
    if (request.connect) co_return co_await connect(client, std::move(request), decided);
    const auto exchange = std::make_shared<http_exchange>(client, std::move(request), decided);
    if (!co_await exchange->run()) co_return;
    client->limit(client->input().empty() ? session.settings().client_keep_alive
                                          : session.settings().head_timeout);
    if (client->input().empty()) {
      if (!co_await client->read_more()) co_return;
      client->limit(session.settings().head_timeout);
    }
  }
}

std::string http_refusal(unsigned status, std::string_view reason, std::string_view line) {
  std::string out = "HTTP/1.1 " + std::to_string(status) + " ";
  out.append(phrase(status)).append(" (ccbox: ").append(reason).append(")\r\nX-Proxy-Error: ").append(reason);
  out += "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: " + std::to_string(line.size() + 1);
  if (status == 407) out += "\r\nProxy-Authenticate: Basic realm=\"ccbox\"";
  if (status == 429) out += "\r\nRetry-After: 1";
  out.append("\r\nConnection: close\r\n\r\n").append(line).append("\n");
  return out;
}

std::string http_refusal(const destination& to, const dial_failure& failure, const egress_policy& policy) {
  if (failure.what == dial_failure::kind::refused_by_policy)
    return http_refusal(403, failure.word(), policy.explain(to, failure.by));
  return http_refusal(failure.http_status(), failure.word(),
                      authority_text(to) + " " + std::string(failure.text()));
}

std::string for_method(std::string_view method, std::string refusal) {
  if (method == "HEAD") refusal.resize(refusal.find("\r\n\r\n") + 4);
  return refusal;
}

}  // namespace ccbox::egress
