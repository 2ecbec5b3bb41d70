// The sockets that a server listens on: its own Unix socket, a loopback address, or those that systemd hands
// over.
#pragma once

#include <string>
#include <vector>

#include "result.hpp"
#include "unique_fd.hpp"

namespace ccbox::server {

// Mode 0600 from the first moment. What a dead server left there is replaced; conflict: somebody listens
// there, or it is no socket.
result<unique_fd> listen_on_unix(const std::string& path);
// "127.0.0.1:PORT" or "[::1]:PORT"; port 0: any. invalid_argument: another address.
result<unique_fd> listen_on_loopback(const std::string& address);
// LISTEN_FDS of sd_listen_fds(3), taken out of the environment; each must be a stream socket, Unix or
// loopback.
result<std::vector<unique_fd>> sockets_from_systemd();

bool is_tcp(int socket);
std::string address_of(int socket);  // for the log: a path, or ADDRESS:PORT

// Tells systemd, if it asked for it: "READY=1".
void notify_systemd(const std::string& state);

}  // namespace ccbox::server
