// The peer that every enclosure of bubblewrap's is measured against: bwrap alone, with the same view.
#pragma once

#include <string>
#include <vector>

#include "plan.hpp"

namespace ccbox::bench {

// The plan's own bwrap arguments, ready for a command to follow: no ccbox-init, no broker, no system-call
// filter. Descriptors are spelled as the paths they stand for; what bwrap reads from one (the empty file over
// a secret) is a descriptor that it inherits from us.
std::vector<std::string> bare_bwrap(const plan& how);

}  // namespace ccbox::bench
