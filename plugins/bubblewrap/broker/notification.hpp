// The listener's end of system calls that wait for an answer: receiving them and answering.
#pragma once

#include <linux/seccomp.h>

#include <cstdint>

#include "descriptor.hpp"

namespace ccbox::bubblewrap {

class listener {
 public:
  explicit listener(descriptor fd);

  // Blocks. False: interrupted, or the caller is gone already.
  bool receive(seccomp_notif& call) const;

  // Each answers the call once. A caller that is gone is nothing.
  void let_the_kernel_do(std::uint64_t id) const;
  void return_value(std::uint64_t id, std::int64_t value) const;
  void return_error(std::uint64_t id, int error_number) const;
  // Puts `fd` into the caller's table, and tells its number there; negative: errno says why not. The answer
  // is still to be given, after the broker has closed its own. (With SECCOMP_ADDFD_FLAG_SEND the caller
  // would go on first, and executing what it has just written fail with ETXTBSY now and then.)
  int put_descriptor(std::uint64_t id, int fd, bool close_on_exec) const;
  bool still_waits(std::uint64_t id) const;

 private:
  void answer(seccomp_notif_resp response) const;
  descriptor fd_;
};

}  // namespace ccbox::bubblewrap
