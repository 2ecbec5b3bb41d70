// bubblewrap's command line for a view: options as text, host paths by descriptor.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ccbox/plugin.hpp"
#include "floor.hpp"
#include "view.hpp"

namespace ccbox::bubblewrap {

struct host_facilities {
  std::string bwrap;             // absolute
  bool cgroup_namespace = true;  // this kernel has them
};

// Writes argv, the sealed files, the paths to open and the plan's flags into the sink; with a guard,
// ccbox-broker starts bubblewrap. CCBOX_TOO_LARGE where bubblewrap would not take that many arguments.
void write_arguments(const plugin::plan_request& request, const host_facilities& host, const view& v,
                     const std::optional<guard>& names, plugin::plan_sink& sink);

}  // namespace ccbox::bubblewrap
