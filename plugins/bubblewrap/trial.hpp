// Starting a trivial enclosure once, with the plan that real ones get: the only proof that this host can.
#pragma once

#include <string_view>

#include "arguments.hpp"
#include "diagnosis.hpp"

namespace ccbox::bubblewrap {

// Both block for at most `limit_ms` and leave no process and no file behind. They run on the calling thread,
// which may be one of several. They throw plugin::failure only where the host is out of descriptors or
// processes, or a directory for the trial cannot be made.

// The command is `true`.
trial_outcome try_enclosure(const host_facilities& host, unsigned limit_ms);

// With a writable directory of the host and a name rule: ccbox-init lays the floor, ccbox-broker answers, an
// ordinary name is made and removed, and a forbidden one is refused, which the broker must tell of.
trial_outcome try_names(const host_facilities& host, std::string_view init_path, unsigned limit_ms);

}  // namespace ccbox::bubblewrap
