// The owner's side of the janitor: at most one in a process, started when the first group is made. [any
// thread]
#pragma once

#include <string>

#include "result.hpp"

namespace ccbox {

// Before the directory is made: from now on it does not outlive this process.
result<void> janitor_remember(const std::string& directory, const std::string& init_path);
// After it was removed.
void janitor_forget(const std::string& directory);
// Kills what is in it and removes it, in the janitor's own time. False: there is no janitor.
bool janitor_end(const std::string& directory);

}  // namespace ccbox
