// The field section that requests and responses share: field lines, what frames the body, and what is between
// two neighbours only and so never forwarded.
//
// Pure; any thread. The views point into the bytes that were parsed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace ccbox::egress {

constexpr std::size_t max_head_bytes = 64 * 1024;
constexpr std::size_t max_fields = 128;
constexpr std::size_t max_connection_options = 32;

struct http_error {
  unsigned status = 400;
  std::string_view why;  // fixed text for the client; no byte of the message
};

bool is_token(std::string_view text);                                     // RFC 9110: one or more tchar
bool equal_ignoring_case(std::string_view text, std::string_view lower);  // ASCII; `lower` is lower-case
// A value of a field: no control byte but tabs; bytes beyond ASCII are opaque.
bool is_field_text(std::string_view text);

// The elements of a comma list, without empty ones and the space around them.
std::vector<std::string_view> list_elements(std::string_view value);

struct field_section {
  enum class kind {
    end_to_end,
    host,
    content_length,
    expect,
    connection,
    proxy_connection,
    proxy_authorization,
    transfer_encoding,
    upgrade,
    neighbour,  // hop by hop, of no further interest: Keep-Alive, TE, Trailer, …
  };
  struct field {
    kind what;
    std::string_view name, value;
  };
  std::vector<field> lines;  // in order, as written, the space around the values not included

  std::optional<std::uint64_t> content_length;
  bool chunked = false;
  std::vector<std::string_view> connection_options;  // of Connection alone
  bool close = false, keep_alive = false;            // in Connection or Proxy-Connection
  bool to_websocket = false;                         // Connection: upgrade with websocket among Upgrade

  // The end to end fields that Connection does not name.
  std::vector<std::pair<std::string, std::string>> forwarded() const;
};

// `text`: everything behind the start line, the empty line at the end not included. 400: a malformed line or
// Connection list; a Content-Length that is repeated or no plain number below 2^63 (no sign, no leading
// zero); a Transfer-Encoding that is repeated or not `chunked` alone, or is together with a Content-Length,
// or in HTTP/1.0; a field that is one of the two but for an underscore. 431: too many fields.
std::variant<field_section, http_error> parse_field_section(std::string_view text, unsigned minor_version);

// "Name: value\r\n"
void append_field(std::string& out, std::string_view name, std::string_view value);

}  // namespace ccbox::egress
