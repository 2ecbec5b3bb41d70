// The checks of the contract suite, in the order in which they run. Each is called in a process of its own
// with the plugin loaded; it returns if the promise is kept and throws contract::violation or
// contract::not_applicable if not.
#pragma once

#include <string_view>
#include <vector>

#include "contract_subject.hpp"

namespace ccbox::contract {

struct check_entry {
  std::string_view name;
  std::string_view promise;
  void (*run)(const subject&);
};

const std::vector<check_entry>& lifecycle_checks();  // every plugin
const std::vector<check_entry>& probe_checks();      // backends
const std::vector<check_entry>& plan_checks();       // backends
const std::vector<check_entry>& monitor_checks();    // monitors

// Directories with these names exist in the suite's `work`: the checks of path bytes use them.
std::vector<std::string> hostile_directory_names();

// From now on, starting a process, executing a program or changing anything in the file system ends this
// process, and the runner reports the system call by its name. Only for a check's process.
void forbid_side_effects();

// What a check's process tells the runner, in memory that both share. `forbidden_call` is written from a
// signal handler.
struct verdict {
  enum state_t : int { silent, passed, failed, create_refused, not_applicable };
  volatile int state;
  volatile int forbidden_call;  // number of the system call + 1
  char reason[2048];
};
void report_side_effects_to(verdict* v);
std::string system_call_name(int number);

}  // namespace ccbox::contract
