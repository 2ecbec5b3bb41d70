// SOCKS5 (RFC 1928, with RFC 1929 where a password is set), SOCKS4 and SOCKS4a, server side: an incremental
// parser that is fed whatever has arrived, byte by byte or everything in one segment, and the exact replies.
// Its answer does not depend on how the input is cut.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "destination.hpp"

namespace ccbox::egress {

enum class socks_version { v4, v5 };

enum class socks_reply : std::uint8_t {
  succeeded = 0,
  general_failure = 1,
  not_allowed = 2,
  network_unreachable = 3,
  host_unreachable = 4,
  connection_refused = 5,
  ttl_expired = 6,
  command_not_supported = 7,
  address_type_not_supported = 8,
};

class socks_parser {
 public:
  // `password`: what RFC 1929 and the user id of SOCKS4 must carry (any user name in SOCKS5); none: no
  // authentication is offered, and the user id of SOCKS4 says nothing.
  explicit socks_parser(std::optional<std::string> password = {});

  enum class state { more, request, refused };
  struct step {
    state now = state::more;
    std::size_t consumed = 0;
    std::string reply;  // send this first, if it is not empty; at `refused` send it and close
  };
  // Stops behind the request: what follows is the tunnel's early data. A request is read to its end before it
  // is refused, wherever its length is known. After `request` and `refused` it consumes nothing more.
  step feed(std::string_view input);

  // After state::request:
  const destination& to() const { return to_; }
  socks_version version() const { return version_; }
  bool four_a() const { return four_a_; }
  // After state::refused: one fixed line for the log, and the host's bytes as sent if they or the port were
  // malformed.
  std::string_view why() const { return why_; }
  const std::string& offending_bytes() const { return offending_; }

  // A reply to the request; 10 bytes for v5 (bound address 0.0.0.0:0), 8 for v4.
  std::string reply(socks_reply code) const;

 private:
  enum class stage { version, methods, password, request_v5, request_v4, request, refused };

  // Each looks at what has come of its message, after every byte, and says whether the message is whole. A
  // whole or hopeless one leads to another stage; `reply` takes what is to be sent for it.
  bool read_message(std::string& reply);
  bool read_version();
  bool read_methods(std::string& reply);
  bool read_password(std::string& reply);
  bool read_request_v5(std::string& reply);
  bool read_request_v4(std::string& reply);
  void finish(std::string_view host, bool is_name, std::uint16_t port, std::string& reply);
  void refuse(std::string_view why, std::string_view answer, std::string& reply);

  std::optional<std::string> password_;
  std::string message_;  // of the present stage, as far as it has come
  stage stage_ = stage::version;
  socks_version version_ = socks_version::v5;
  bool four_a_ = false;
  destination to_;
  std::string_view why_;
  std::string offending_;
};

}  // namespace ccbox::egress
