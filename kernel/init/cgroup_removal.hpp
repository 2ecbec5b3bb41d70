// Ending a control group: killing what is in it and removing its directory. Shared by the kernel and its
// janitor; no allocation beyond std::string and std::vector.
#pragma once

#include <string>

namespace ccbox::init {

// Sends SIGKILL to every process in the group, never to one that merely got the number of a former member.
void kill_cgroup(const std::string& directory);

// Kills and removes the group and those below it, again and again for `limit_ms` at most, because a process
// stays a member until it is quite dead. True once the directory is gone.
bool end_cgroup(const std::string& directory, unsigned limit_ms);

}  // namespace ccbox::init
