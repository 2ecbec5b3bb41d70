// `ccbox net-connect [--proxy IP:PORT] HOST PORT`: joins standard input and output to HOST:PORT through the
// session's SOCKS5 proxy. It is what ssh is given as ProxyCommand.
//
// Also a small static program of its own (main.cpp), which is what enclosures have: it uses the C library and
// std::string, nothing of the kernel.
//
// The proxy is --proxy, or else what ALL_PROXY or HTTP_PROXY name (both speak SOCKS5). The credentials of a
// proxy that wants some come from CCBOX_PROXY_TOKEN (user:password) or the URL, never from the command line.
// Each end of input is passed on as such: the other direction goes on.
#pragma once

namespace ccbox {

// Exit codes of net_connect().
constexpr int net_connect_unreachable = 1;  // allowed, but it could not be connected
constexpr int net_connect_refused = 2;      // by the session's rules
constexpr int net_connect_failed = 125;     // wrong usage, no proxy, or one that does not speak SOCKS5

// argv[0] is the name in messages. Prints to standard error why there is no connection.
int net_connect(int argc, char** argv);

}  // namespace ccbox
