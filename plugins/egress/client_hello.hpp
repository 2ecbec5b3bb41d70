// The server name in the first bytes of a TLS connection. Incremental: feed what has arrived so far, from the
// start; records may be fragmented. Nothing is consumed.
#pragma once

#include <string>
#include <string_view>

namespace ccbox::egress {

struct hello_peek {
  enum class state {
    need_more,  // a ClientHello so far
    not_tls,    // something else: another protocol, or a ClientHello that no server would take
    no_name,    // a whole ClientHello without server_name, or with an encrypted one only
    named,
  };
  state what = state::need_more;
  std::string name;  // named: as on the wire, any bytes; canonicalise before comparing
};

constexpr std::size_t max_client_hello_bytes = 16 * 1024 + 5;  // more than this is not_tls

hello_peek peek_client_hello(std::string_view bytes);

}  // namespace ccbox::egress
