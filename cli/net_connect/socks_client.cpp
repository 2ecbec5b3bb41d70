#include "net_connect/socks_client.hpp"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ccbox {

namespace {

constexpr int answer_limit_ms = 120'000;
constexpr int explanation_limit_ms = 5'000;
constexpr std::size_t max_explanation = 4096;

std::int64_t now_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) return false;
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool wait_readable(int socket, std::int64_t until) {
  for (;;) {
    const auto left = until - now_ms();
    if (left <= 0) return false;
    pollfd waiting{socket, POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(left));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

// Not a byte more: what follows is the destination's.
bool receive_exactly(int socket, std::size_t size, std::int64_t until, std::string& into) {
  into.clear();
  while (into.size() < size) {
    if (!wait_readable(socket, until)) return false;
    char buffer[512];
    const ssize_t got = recv(socket, buffer, size - into.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    into.append(buffer, static_cast<std::size_t>(got));
  }
  return true;
}

socks_answer broken(const char* why) {
  return {socks_answer::state::broken, 0, why};
}

bool authenticate(int socket, const std::string& credentials, std::int64_t until) {
  const auto colon = credentials.find(':');
  const auto user = credentials.substr(0, colon);
  const auto password = colon == credentials.npos ? std::string() : credentials.substr(colon + 1);
  if (user.size() > 255 || password.size() > 255) return false;
  std::string request("\x01", 1);
  request += static_cast<char>(user.size());
  request += user;
  request += static_cast<char>(password.size());
  request += password;
  std::string reply;
  return send_all(socket, request) && receive_exactly(socket, 2, until, reply) && reply[1] == 0;
}

std::string request_of(const std::string& host, std::uint16_t port) {
  std::string request("\x05\x01\x00", 3);
  unsigned char address[16];
  if (inet_pton(AF_INET, host.c_str(), address) == 1) {
    request += '\x01';
    request.append(reinterpret_cast<const char*>(address), 4);
  } else if (inet_pton(AF_INET6, host.c_str(), address) == 1) {
    request += '\x04';
    request.append(reinterpret_cast<const char*>(address), 16);
  } else {
    request += '\x03';
    request += static_cast<char>(host.size());
    request += host;
  }
  request += static_cast<char>(port >> 8);
  request += static_cast<char>(port & 0xff);
  return request;
}

std::string base64(std::string_view bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    const auto count = bytes.size() - i < 3 ? bytes.size() - i : 3;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k)
      out += k <= count ? digits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

}  // namespace

socks_answer socks_connect(int socket, const std::string& host, std::uint16_t port,
                           const std::string& credentials) {
  const auto until = now_ms() + answer_limit_ms;
  const std::string greeting =
      credentials.empty() ? std::string("\x05\x01\x00", 3) : std::string("\x05\x02\x00\x02", 4);
  std::string reply;
  if (!send_all(socket, greeting) || !receive_exactly(socket, 2, until, reply))
    return broken("it ended the connection before it had answered");
  if (reply[0] != 5) return broken("what answers there is no SOCKS5 proxy");
  if (reply[1] == 2 && !credentials.empty()) {
    if (!authenticate(socket, credentials, until)) return broken("it did not take the credentials");
  } else if (reply[1] != 0) {
    return broken(credentials.empty() ? "it wants credentials, and CCBOX_PROXY_TOKEN is not set"
                                      : "it takes none of the ways to authenticate");
  }
  if (!send_all(socket, request_of(host, port)) || !receive_exactly(socket, 4, until, reply))
    return broken("it ended the connection without a reply, or took too long");
  const auto code = static_cast<std::uint8_t>(reply[1]);
  const char type = reply[3];
  if (reply[0] != 5) return broken("its reply is no SOCKS5");
  std::string bound;
  std::size_t address_bytes = type == 1 ? 4 : type == 4 ? 16 : 0;
  if (type == 3) {
    if (!receive_exactly(socket, 1, until, bound)) return broken("its reply is cut short");
    address_bytes = static_cast<unsigned char>(bound[0]);
  } else if (address_bytes == 0) {
    return broken("its reply has an address of no known type");
  }
  if (!receive_exactly(socket, address_bytes + 2, until, bound)) return broken("its reply is cut short");
  if (code != 0) return {socks_answer::state::refused, code, {}};
  return {socks_answer::state::connected, 0, {}};
}

std::string_view socks_reply_text(std::uint8_t code) {
  switch (code) {
    case 1:
      return "the proxy could not do it";
    case 2:
      return "refused by the session's rules";
    case 3:
      return "network unreachable";
    case 4:
      return "host unreachable: its name has no address, or nobody answers there";
    case 5:
      return "connection refused";
    case 6:
      return "no answer in time";
    case 7:
      return "the proxy does not know this request";
    case 8:
      return "the proxy does not take this kind of address";
    default:
      return "refused for a reason that SOCKS5 has no word for";
  }
}

std::string ask_http_proxy(int socket, const std::string& host, std::uint16_t port,
                           const std::string& credentials) {
  const auto until = now_ms() + explanation_limit_ms;
  for (const char c : host)
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f) return {};  // it would be another request
  const std::string target =
      (host.find(':') == host.npos ? host : "[" + host + "]") + ":" + std::to_string(port);
  std::string request = "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n";
  if (!credentials.empty()) request += "Proxy-Authorization: Basic " + base64(credentials) + "\r\n";
  if (!send_all(socket, request + "\r\n")) return {};
  shutdown(socket, SHUT_WR);
  std::string answer;
  while (answer.size() < max_explanation && wait_readable(socket, until)) {
    char buffer[512];
    const ssize_t got = recv(socket, buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    answer.append(buffer, static_cast<std::size_t>(got));
  }
  if (answer.compare(0, 9, "HTTP/1.1 ") != 0 || answer.compare(9, 3, "403") != 0) return {};
  const auto body = answer.find("\r\n\r\n");
  return body == answer.npos ? std::string() : answer.substr(body + 4);
}

}  // namespace ccbox
