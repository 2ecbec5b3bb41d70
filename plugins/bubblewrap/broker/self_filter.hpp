// What the broker may ask of the kernel once it answers calls: what answering takes, and nothing that starts
// a program, opens a socket, looks into another process beyond reading it, or changes a namespace.
#pragma once

namespace ccbox::bubblewrap {

// For all threads of the process. Wants no_new_privs. False: errno says why.
bool restrict_own_calls();

}  // namespace ccbox::bubblewrap
