// SOCKS5, SOCKS4 and SOCKS4a on a client's connection: one request, an exact reply, a tunnel.
#pragma once

#include <memory>

#include "client_connection.hpp"

namespace ccbox::egress {

task<void> serve_socks(std::shared_ptr<client_connection> client);

}  // namespace ccbox::egress
