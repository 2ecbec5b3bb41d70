// Waiting for what happens outside this process: an event with a limit, never a sleep.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "unique_fd.hpp"

namespace ccbox::test {

// True once nothing of that name exists.
bool wait_until_removed(const std::string& path, int limit_ms = 10000);

// Of a process that runs now; not open if there is none.
unique_fd open_process(pid_t pid);
bool wait_until_ended(int pidfd, int limit_ms = 10000);

std::vector<pid_t> children_of(pid_t pid);
// The process and all that descend from it, as pidfds.
std::vector<unique_fd> open_process_tree(pid_t pid);

}  // namespace ccbox::test
