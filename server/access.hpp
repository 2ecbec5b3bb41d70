// Who may ask: what a request must show besides having reached the socket. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "result.hpp"

namespace ccbox::server {

struct access_rules {
  std::string token;                         // of TCP; empty: by Unix socket only
  std::vector<std::string> allowed_origins;  // exact
};

struct caller {
  bool by_tcp = false;
  std::string_view host;                   // Host header, "" if absent
  std::optional<std::string_view> origin;  // Origin header
  std::optional<std::string_view> authorization;
};

// permission_denied with the reason. Host must name this machine: a page that a browser loaded from elsewhere
// cannot say so, even where its name has been made to resolve to a loopback address. Any Origin that is not
// allowed is refused, on the Unix socket too.
result<void> may_ask(const access_rules& rules, const caller& who);

// 0600 and of this user; at least 16 bytes once the white space at its ends is gone.
result<std::string> read_token(const std::string& file);

}  // namespace ccbox::server
