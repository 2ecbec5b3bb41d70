// The head of an origin's answer to a request that we forwarded. As strict about framing as the request is:
// whatever could be read in two ways becomes a 502.
#pragma once

#include <cstdint>
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
  bool keep_alive = false;  // the origin's connection may be used again once the body was read
  bool switches = false;    // 101 to websocket, which the request asked for
  std::vector<std::pair<std::string, std::string>> fields;  // end to end, as in request_head
};

// `request` decides about HEAD, CONNECT and whether a 101 is welcome. An http_error has status 502.
std::variant<response_head, http_error> parse_response_head(std::string_view head,
                                                            const request_head& request);
// What goes to the client. `close`: we will close after it. A chunked body goes to an HTTP/1.0 client
// unchunked, until close.
std::string write_response_head(const response_head& response, const request_head& request, bool close);

}  // namespace ccbox::egress
