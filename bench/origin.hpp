// The server that all contenders of the egress bench fetch from: `GET …/N` is answered with N bytes, on kept
// connections, without touching the bytes (sendfile).
#pragma once

namespace ccbox::bench {

// Serves a listening socket until the process is killed.
[[noreturn]] void run_origin(int listener);

}  // namespace ccbox::bench
