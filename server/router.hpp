// Which handler answers which request.
//
// Filled before the first request, read-only from then on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api_types.hpp"

namespace ccbox::server {

struct route {
  std::string method;
  std::string pattern;      // "/v1/sandboxes/{id}": a part in braces is any one part
  request_handler answer;   // or …
  upgrade_handler upgrade;  // … of a WebSocket
};

class router {
 public:
  void add(std::string method, std::string pattern, request_handler handler);
  void add_socket(std::string pattern, upgrade_handler handler);  // GET with Upgrade: websocket

  // What was found for `target` as it stands in the request line; the error is not_found or, for another
  // method, `wrong_method` with those that there are, or invalid_argument for a malformed target.
  struct match {
    const route* found = nullptr;
    api_request request;               // method, path, query and captured are filled in
    std::vector<std::string> allowed;  // methods of the path, where this one is not among them
  };
  result<match> find(std::string_view method, std::string_view target) const;
  const std::vector<route>& routes() const { return routes_; }

 private:
  std::vector<route> routes_;
};

}  // namespace ccbox::server
