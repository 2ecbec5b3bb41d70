// Starting a trivial enclosure once, with the plan that real ones get: the only proof that this host can.
#pragma once

#include "arguments.hpp"
#include "diagnosis.hpp"

namespace ccbox::bubblewrap {

// Blocks for at most `limit_ms`; leaves no process behind. The command is `true`. Runs on the calling thread,
// which may be one of several. Throws plugin::failure only where the host is out of descriptors or processes.
trial_outcome run_trial(const host_facilities& host, unsigned limit_ms);

}  // namespace ccbox::bubblewrap
