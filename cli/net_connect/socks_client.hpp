// The client's side of SOCKS5 (RFC 1928, RFC 1929), as far as a CONNECT takes, over a connected blocking
// socket.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ccbox {

struct socks_answer {
  enum class state { connected, refused, broken };
  state what = state::broken;
  std::uint8_t code = 0;  // refused: the reply code
  std::string why;        // broken: what is wrong with the proxy
};

// Answers within two minutes: the proxy may resolve and dial meanwhile. `host` has 255 bytes at most;
// `credentials` is user:password, or empty. What the destination sends is left in the socket.
socks_answer socks_connect(int socket, const std::string& host, std::uint16_t port,
                           const std::string& credentials);

std::string_view socks_reply_text(std::uint8_t code);  // for people

// SOCKS5 has only a number for a refusal. The same proxy tells an HTTP client the reason: the first line of
// the body of its answer to a CONNECT, or nothing.
std::string ask_http_proxy(int socket, const std::string& host, std::uint16_t port,
                           const std::string& credentials);

}  // namespace ccbox
