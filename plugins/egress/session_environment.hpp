// The environment with which the tools of a session find its proxies. To be set after the host's sanitiser
// has run: it drops most of these names.
//
// Two seams for those who come after:
//  - The ProxyCommand helper (`net_connect`, a path inside the enclosure) is called as
//      <net_connect> --proxy 127.0.0.1:PORT HOST PORT
//    and speaks SOCKS5 to that address. With a token it takes user and password from the variable
//    CCBOX_PROXY_TOKEN, "ccbox:TOKEN" (never from argv, which others can read); without that variable it
//    offers no authentication.
//  - A gateway on the host, such as the one for pushes, is a further kind of listener: init makes one more
//    listening socket inside the enclosure, and the pair passes each connection on it to one fixed address,
//    set when the session is opened, with no proxy protocol and no decision. Its loopback ip:port is then
//    reachable without a proxy, as NO_PROXY wants it. Until then an allow entry 127.0.0.1:PORT lets clients
//    that ask the proxies for it through.
#pragma once

#include <string>
#include <vector>

#include "session_settings.hpp"

namespace ccbox::egress {

struct environment_entry {
  std::string name, value;
  bool append = false;  // to a value that is there, after a space
};

struct environment_inputs {
  std::string http, socks;  // ip:port, where commands find the listeners
  std::string token;        // empty: no authentication
  std::string net_connect;  // empty: there is no helper, and ssh gets no ProxyCommand
  all_proxy_mode all_proxy = all_proxy_mode::socks5h;
};

std::vector<environment_entry> session_environment(const environment_inputs& in);

// `text` as one word of /bin/sh.
std::string shell_word(std::string_view text);

}  // namespace ccbox::egress
