// The head of an origin's answer to a request that we forwarded. As strict about framing as the request is:
// whatever could be read in two ways becomes a 502. Where the status alone rules a body out (204, 304), a
// length or coding that speaks of one costs the connection to the origin instead: nothing behind it is read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "request_head.hpp"

namespace ccbox::egress {

struct response_head {
  unsigned status = 0;
  std::string reason;
  unsigned minor_version = 1;
  enum class framing { none, length, chunked, until_close };
  framing body = framing::none;
  std::uint64_t body_bytes = 0;
  std::optional<std::uint64_t> announced_bytes;  // HEAD and 304: the length that a GET would bring
  bool keep_alive = false;  // the origin's connection may be used again once the body was read
  bool switches = false;    // 101 to websocket, which the request asked for
  std::vector<std::pair<std::string, std::string>> fields;  // end to end, as in request_head
};

// As find_head_end for requests, but without empty lines in front, and with status 502.
std::variant<std::size_t, http_error> find_response_head_end(std::string_view bytes, std::size_t& scanned);
// `request` decides about HEAD, CONNECT and whether a 101 is welcome. An http_error has status 502.
std::variant<response_head, http_error> parse_response_head(std::string_view head,
                                                            const request_head& request);
// Must the client's connection close to end the body? (No length, or chunked to an HTTP/1.0 client, which
// gets the data unchunked.)
bool ends_by_close(const response_head& response, const request_head& request);
// What goes to the client. `close`: we will close after it; ends_by_close() implies it. An interim answer
// (1xx) carries no Connection field; HTTP/1.0 clients must not be sent one at all.
std::string write_response_head(const response_head& response, const request_head& request, bool close);

}  // namespace ccbox::egress
