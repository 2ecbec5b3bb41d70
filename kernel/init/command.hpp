// One command: a child in a session of its own, from the fork until its program runs, and how to signal it.
//
// The child reports what went wrong before its program ran through a pipe that closes when the program
// starts; init never waits for either, since a directory on a dead network file system can hold a child for
// ever.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "../unique_fd.hpp"
#include "protocol.hpp"

namespace ccbox::init {

struct command {
  std::uint64_t id = 0;
  pid_t pid = -1;  // also its process group and session
  bool has_terminal = false;
  unique_fd start;   // readable when the outcome is known; not open: it runs
  unique_fd master;  // until it goes out with `started`
};

// Forks. `descriptors`: those that message.flags announce, in order; taken over in any case. On failure
// `into` is unchanged. Confined: a directory among the descriptors is refused, since it would lead out of the
// enclosure.
std::optional<failed_message> start_command(const exec_message& message, std::vector<unique_fd> descriptors,
                                            bool confined, command& into);

enum class start_outcome { pending, running, failed };
// Reads `start` without waiting; failed: `why` is set.
start_outcome poll_start(command& c, failed_message& why);

// To its process group, and to the foreground group of its terminal.
void signal_command(const command& c, int number);

}  // namespace ccbox::init
