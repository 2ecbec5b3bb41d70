// Whether this kernel can refuse names: what floor and broker need of it, and which part is missing. A word
// for machines and a remedy for people, as in diagnosis.hpp.
#pragma once

#include <cerrno>
#include <optional>
#include <string>

#include "diagnosis.hpp"

namespace ccbox::bubblewrap {

// What two or three system calls tell, which change nothing.
struct name_signs {
  long landlock_version = 0;
  int landlock_error = 0;  // errno of asking for it; 0: there is a version
  int listener_error =
      EFAULT;             // errno of asking for a listener with a program that is none: EFAULT is support
  bool listeners = true;  // the kernel knows them at all
};
name_signs read_name_signs();

// Nothing: it may work, and the launch or the trial shows whether it does.
std::optional<diagnosis> diagnose_name_signs(const name_signs& signs);

// ccbox-broker is not there, or cannot be executed.
std::optional<diagnosis> diagnose_broker(const std::string& broker_path);

// Of a trial with a name rule that did not succeed, where one without it does.
diagnosis diagnose_name_trial(const trial_outcome& outcome, const host_signs& signs);

}  // namespace ccbox::bubblewrap
