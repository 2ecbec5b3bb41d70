// How the names that may not be made are guarded: what ccbox-init puts under the commands (ccbox/floor.hpp),
// and what ccbox-broker is told (broker_orders.hpp).
//
// Every writable host directory of the view is guarded, whether it has rules or not: a tree that the kernel
// left open would open whatever of a guarded one lies in it, or is the same. Private memory is left open
// unless such a directory is mounted inside it.
#pragma once

#include <optional>
#include <string>

#include "ccbox/plugin.hpp"
#include "view.hpp"

namespace ccbox::bubblewrap {

struct guard {
  std::string broker_path;
  std::string broker, floor;  // encoded
};

// Who enforces a name rule, for people.
std::string layer_of_names(const plugin::rule& r);

bool is_name_rule(const plugin::rule& r);

// Where ccbox-broker is installed.
std::string broker_beside(std::string_view init_path);

// Nothing where no name rule applies.
std::optional<guard> plan_guard(const plugin::plan_request& request, const view& v);

}  // namespace ccbox::bubblewrap
