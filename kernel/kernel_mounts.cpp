#include "kernel_mounts.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>

#include "mountinfo.hpp"
#include "path_spelling.hpp"

namespace ccbox {

namespace {

// Programs size themselves by what they read in the first kind.
constexpr std::array<std::string_view, 5> switches{"sysfs", "cgroup", "cgroup2", "devtmpfs", "devpts"};
constexpr std::array<std::string_view, 17> secrets{
    "proc",    "debugfs",    "tracefs",    "securityfs", "selinuxfs", "smackfs",
    "bpf",     "configfs",   "pstore",     "efivarfs",   "mqueue",    "binfmt_misc",
    "fusectl", "rpc_pipefs", "functionfs", "resctrl",    "nfsd"};

template <class List>
bool contains(const List& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

}  // namespace

std::vector<kernel_mount> parse_kernel_mounts(std::string_view mountinfo) {
  std::map<std::string, std::string> type_at;
  for (auto& mount : parse_mountinfo(mountinfo))
    if (mount.place.starts_with('/')) type_at[std::move(mount.place)] = std::move(mount.type);
  std::vector<kernel_mount> found;
  for (auto& [path, type] : type_at) {
    if (is_within(path, "/proc") || is_within(path, "/dev")) continue;
    const bool secret = contains(secrets, type);
    if (secret || contains(switches, type)) found.push_back({path, type, secret});
  }
  return found;
}

std::vector<kernel_mount> find_kernel_mounts() {
  std::ifstream file("/proc/self/mountinfo");
  return parse_kernel_mounts(std::string(std::istreambuf_iterator<char>(file), {}));
}

}  // namespace ccbox
