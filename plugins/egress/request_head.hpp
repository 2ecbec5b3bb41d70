// The head of an HTTP/1.x request as a proxy reads it: strict, so that nobody behind us reads it differently.
//
// Refused with 400: bare LF or CR, control bytes, obs-fold, space before a colon, an empty or non-token field
// name, CL with TE, a repeated or malformed Content-Length, a transfer coding other than a single `chunked`,
// TE in HTTP/1.0, two Host fields, none with HTTP/1.1 (CONNECT may do without), a Host that is malformed, an
// authority with anything but host[:port], https:// or unknown schemes in absolute form (the text says to use
// CONNECT), a fragment, a query without a path, a byte in the target that must be percent-encoded, origin
// form and `*`, a CONNECT without port, HEAD and CONNECT in other case, an upgrade with a body. 505 for
// versions but 1.0 and 1.1; 417 for expectations but 100-continue; 431 over 64 KiB or 128 fields; 414 for a
// target over 8 KiB.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "destination.hpp"
#include "header_fields.hpp"

namespace ccbox::egress {

constexpr std::size_t max_target_bytes = 8 * 1024;

enum class body_kind { none, length, chunked };

struct request_head {
  std::string method;  // a token, as written: methods are case-sensitive
  bool connect = false;
  unsigned minor_version = 1;  // 0 or 1
  destination to;
  std::string origin_target;  // absolute form: path and query, at least "/" ("*" for OPTIONS without a path)
  bool websocket = false;     // Upgrade: websocket was asked for (ws:// and http:// alike)
  body_kind body = body_kind::none;  // CONNECT has none whatever its fields say
  std::uint64_t body_bytes = 0;      // length
  bool keep_alive = true;            // by version, Connection and Proxy-Connection
  bool expects_continue = false;     // a body is announced and waits for a 100; written out from here
  std::optional<std::string> proxy_authorization;
  // End to end fields in order, as written: without Host, the framing, Expect, hop-by-hop fields and those
  // that Connection names. What is left out is written anew from the members above, so it cannot be named
  // away.
  std::vector<std::pair<std::string, std::string>> fields;
};

// How many bytes the head takes at the front of `bytes`, its last CRLF CRLF included; 0: not complete yet.
// Looks on from `scanned`, which it advances. Empty lines before the request are skipped: one CRLF at most.
// The first byte that decides decides: the answer does not depend on how the bytes arrive.
std::variant<std::size_t, http_error> find_head_end(std::string_view bytes, std::size_t& scanned);
// `head`: the bytes that find_head_end found, no more and no fewer.
std::variant<request_head, http_error> parse_request_head(std::string_view head);

// What goes to the origin, of a request that is no CONNECT: request line, Host built from `to`, `fields`, the
// framing, and a Connection field of ours for a websocket only (else HTTP/1.1's default, keep-alive, holds;
// TE and trailers are not forwarded).
std::string write_request_head(const request_head& request);

}  // namespace ccbox::egress
