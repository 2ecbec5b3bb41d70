// The server name in the first bytes of a TLS connection. Incremental: feed what has arrived so far, from the
// start; the hello may be fragmented over records. Nothing is consumed.
//
// An encrypted_client_hello is not looked into: it cannot be told from GREASE, which most browsers send.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ccbox::egress {

struct hello_peek {
  enum class state {
    need_more,  // a ClientHello so far
    not_tls,    // another protocol
    malformed,  // begins as a record of TLS, but some servers might read a name in it that others do not:
                // refuse it where names matter
    no_name,    // a whole ClientHello without server_name, or with an encrypted one only
    named,
  };
  state what = state::need_more;
  std::string name;      // named: as on the wire, any bytes; canonicalise before comparing
  std::size_t size = 0;  // named, no_name: of the records that hold it
};

constexpr std::size_t max_client_hello_bytes = 16 * 1024 + 5;  // what is no whole hello by then is malformed

hello_peek peek_client_hello(std::string_view bytes);

}  // namespace ccbox::egress
