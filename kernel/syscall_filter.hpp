// The base system-call filter that ccbox-init puts on itself and every command.
//
// It refuses what no command needs and escapes are made of: foreign architectures (killed) and x32, io_uring,
// TIOCSTI and TIOCLINUX, new namespaces and mounts (clone3 answers ENOSYS so that glibc falls back to clone,
// whose flags can be seen), ptrace and process_vm_*, keys, bpf, perf, userfaultfd, file handles, AF_UNIX
// sockets that could reach the host's (socketpair streams stay), AF_VSOCK, AF_PACKET, AF_ALG, AF_NETLINK but
// NETLINK_ROUTE, and their kin; changing the limits or the scheduling of process 1 by its number; and making
// a file set-user-id, because it would outlive the enclosure as a program that runs as the caller.
//
// libseccomp knows the numbers; the program is written here, so that what has no condition on its arguments
// stays in the kernel's bitmap of constant answers and what has one is decided within a few instructions.
#pragma once

#include <cstdint>
#include <string>

#include "result.hpp"

namespace ccbox {

enum class filter_architecture { native, x86_64, aarch64 };

// struct sock_filter[] as bytes.
// `without_openat2`: that answers ENOSYS too, because its mode (set-user-id) is in memory where no filter can
// look. For a root caller, unless somebody who can look does the call for it (ccbox/floor.hpp).
result<std::string> build_base_filter(filter_architecture arch, bool without_openat2);

}  // namespace ccbox
