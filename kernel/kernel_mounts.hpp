// Where the host's tree shows the kernel itself: procfs, sysfs, cgroups and their like.
//
// A mount of a directory brings along what is mounted below it. In these file systems a file is a switch or a
// view of other processes, so it is never a part of the project, wherever it lies.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ccbox {

struct kernel_mount {
  std::string path;     // where it is mounted
  std::string type;     // "sysfs"
  bool secret = false;  // shows processes or memory of the host; otherwise programs read it, and may
};

// From the text of /proc/self/mountinfo. Of several mounts at one place the last one counts. What a mount at
// `/` leaves to the enclosure's own (/proc, /dev) is not listed.
std::vector<kernel_mount> parse_kernel_mounts(std::string_view mountinfo);

// Of this process's own view; empty where there is no /proc.
std::vector<kernel_mount> find_kernel_mounts();

}  // namespace ccbox
