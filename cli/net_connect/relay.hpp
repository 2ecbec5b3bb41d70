// Copies standard input to a socket and the socket to standard output until both directions have ended.
#pragma once

namespace ccbox {

// Takes over `socket`. The end of the input ends the socket's sending half; the end of what the socket sends
// closes standard output. False if either broke.
bool relay(int socket);

}  // namespace ccbox
