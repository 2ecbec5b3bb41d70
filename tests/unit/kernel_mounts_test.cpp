#include "kernel_mounts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace ccbox;

namespace {

std::string line(const std::string& place, const std::string& type) {
  return "36 35 98:0 / " + place + " rw,nosuid shared:1 master:2 - " + type + " source rw,errors=continue\n";
}

std::string found(const std::string& mountinfo) {
  std::string text;
  for (const auto& m : parse_kernel_mounts(mountinfo))
    text += m.path + " " + m.type + (m.secret ? " secret" : "") + "\n";
  return text;
}

}  // namespace

TEST_CASE("file systems of the kernel are told from those that hold files, and secrets from switches") {
  CHECK(found(line("/", "ext4") + line("/sys", "sysfs") + line("/sys/fs/cgroup", "cgroup2") +
              line("/sys/kernel/debug", "debugfs") + line("/home", "btrfs") + line("/srv/root/proc", "proc") +
              line("/srv/root/dev/null", "devtmpfs") + line("/tmp", "tmpfs")) ==
        "/srv/root/dev/null devtmpfs\n"
        "/srv/root/proc proc secret\n"
        "/sys sysfs\n"
        "/sys/fs/cgroup cgroup2\n"
        "/sys/kernel/debug debugfs secret\n");
}

TEST_CASE("what an enclosure makes anew by itself is not listed") {
  CHECK(found(line("/proc", "proc") + line("/proc/sys/fs/binfmt_misc", "binfmt_misc") +
              line("/dev", "devtmpfs") + line("/dev/pts", "devpts")) == "");
  CHECK(found(line("/process", "proc")) == "/process proc secret\n");
}

TEST_CASE("a mount over another hides it") {
  CHECK(found(line("/a", "proc") + line("/a", "ext4")) == "");
  CHECK(found(line("/a", "ext4") + line("/a", "proc")) == "/a proc secret\n");
}

TEST_CASE("places are read as the kernel escapes them") {
  CHECK(found(line("/with\\040blank\\134and\\012line", "sysfs")) == "/with blank\\and\nline sysfs\n");
  CHECK(found(line("/ends\\04", "sysfs")) == "/ends\\04 sysfs\n");
}

TEST_CASE("lines that are not as the kernel writes them are passed over") {
  CHECK(found("") == "");
  CHECK(found("\n\n") == "");
  CHECK(found("36 35 98:0 /") == "");
  CHECK(found("36 35 98:0 / /a rw") == "");
  CHECK(found("36 35 98:0 / /a rw -") == "");
  CHECK(found("36 35 98:0 / /a rw - sysfs") == "/a sysfs\n");
  CHECK(found("36 35 98:0 / unreachable rw - sysfs source rw\n") == "");
}

TEST_CASE("this host's are found") {
  const auto all = find_kernel_mounts();
  CHECK(std::any_of(all.begin(), all.end(), [](const kernel_mount& m) { return m.type == "sysfs"; }));
}
