// How the broker gets to where it works: into the enclosure's user and mount namespaces, with no right but to
// read its tasks; outside of its pid namespace, so that nothing inside can name it.
#pragma once

#include "descriptor.hpp"

namespace ccbox::bubblewrap {

struct handed_over {
  descriptor listener, mount_namespace;
};
// What ccbox-init sends (ccbox/floor.hpp). Not open: the other end has gone.
handed_over receive_listener(int socket);

// Both return null, or what failed, with errno.
const char* enter_namespaces(int mount_namespace);
// No capability but CAP_SYS_PTRACE (and, for root, those that its commands have), nothing to be gained by
// executing, not dumpable. Threads that are started later are held to it too.
const char* confine();

}  // namespace ccbox::bubblewrap
