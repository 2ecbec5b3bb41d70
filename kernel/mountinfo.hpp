// The lines of /proc/self/mountinfo: what is mounted where.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ccbox {

struct mounted {
  std::string root;     // the part of the file system that is mounted, "/" for all of it
  std::string place;    // where
  std::string type;     // "cgroup2"
  std::string options;  // of the file system, with commas: for cgroup v1 its controllers
};

// Lines that are malformed are left out.
std::vector<mounted> parse_mountinfo(std::string_view text);

}  // namespace ccbox
