#include "kernel_mounts.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>

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

std::string_view take_word(std::string_view& line) {
  const auto end = std::min(line.find(' '), line.size());
  const auto word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

// The kernel writes blanks, newlines and backslashes as `\ooo`.
std::string unescaped(std::string_view text) {
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
        is_octal(text[i + 3])) {
      out.push_back(
          static_cast<char>((text[i + 1] - '0') << 6 | (text[i + 2] - '0') << 3 | (text[i + 3] - '0')));
      i += 3;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

}  // namespace

std::vector<kernel_mount> parse_kernel_mounts(std::string_view mountinfo) {
  std::map<std::string, std::string> type_at;
  while (!mountinfo.empty()) {
    const auto end = std::min(mountinfo.find('\n'), mountinfo.size());
    auto line = mountinfo.substr(0, end);
    mountinfo.remove_prefix(std::min(end + 1, mountinfo.size()));
    for (int before_the_place = 0; before_the_place < 4; ++before_the_place)
      take_word(line);
    const auto place = take_word(line);
    while (!line.empty() && take_word(line) != "-") {
    }
    const auto type = take_word(line);
    if (!place.starts_with('/') || type.empty()) continue;
    type_at[unescaped(place)] = std::string(type);
  }
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
