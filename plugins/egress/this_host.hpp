// `localhost` and the names below it: this host, whatever a resolver says (RFC 6761).
#pragma once

#include <array>
#include <string_view>

#include "address.hpp"

namespace ccbox::egress {

// `name` as destination has it: in small letters, without a final dot.
inline bool is_this_host(std::string_view name) {
  constexpr std::string_view local = "localhost";
  if (!name.ends_with(local)) return false;
  return name.size() == local.size() || name[name.size() - local.size() - 1] == '.';
}

// What such a name always resolves to.
inline std::array<ip_address, 2> this_host_addresses() {
  ip_address v6;
  v6.bytes[15] = 1;
  return {ip_address::from_v4(0x7f000001), v6};
}

}  // namespace ccbox::egress
