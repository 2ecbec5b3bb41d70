// The least that a proxy can do: one thread, one epoll, CONNECT to an ip:port without a question asked, then
// splice through pooled pipes. What the pair is measured against; it checks nothing and has no limits.
#pragma once

namespace ccbox::bench {

// Serves a listening socket until the process is killed.
[[noreturn]] void run_relay(int listener);

}  // namespace ccbox::bench
