// The descriptors that a plan's launcher is started with, open here for as long as this lives, and the
// request to spawn it. Made by the enclosure, on its strand.
#pragma once

#include <string>
#include <vector>

#include "limits.hpp"
#include "plan.hpp"
#include "process.hpp"
#include "result.hpp"
#include "unique_fd.hpp"

namespace ccbox {

struct launch_materials {
  unique_fd channel_here;
  unique_fd channel_copy;  // of channel_here; unconfined plans only
  unique_fd channel_there, init, stderr_file;
  unique_fd denials_here, denials_there;  // only where the plan asks for them
  std::vector<unique_fd> plan_descriptors;
  spawn_request request;

  // What the launcher has written to its standard error: the first 4 KiB, without the last line's end.
  std::string standard_error() const;
};

// Errors name what could not be opened. A plan with very many paths raises this process's soft limit of open
// files.
result<launch_materials> gather_materials(const plan& p, const std::string& init_path,
                                          const limit_group& limits);

}  // namespace ccbox
