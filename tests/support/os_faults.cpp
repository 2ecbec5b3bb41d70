#include "support/os_faults.hpp"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "os.hpp"

namespace ccbox::test {
namespace {

std::atomic<int> counted, victim, with_error;

bool fail_nth(long, const long (&)[6], long& answer) {
  if (++counted != victim) return false;
  answer = -with_error;
  return true;
}

}  // namespace

failing_call::failing_call(int n, int error_number) {
  counted = 0;
  victim = n;
  with_error = error_number;
  os::test_hook = fail_nth;
}

failing_call::~failing_call() {
  os::test_hook = nullptr;
}

int failing_call::calls() const {
  return counted;
}

bool failing_call::reached() const {
  return counted >= victim;
}

std::string footprint::text() const {
  std::string out;
  for (const std::string& d : descriptors)
    out += d + "\n";
  for (int c : children)
    out += "child " + std::to_string(c) + "\n";
  return out;
}

footprint take_footprint() {
  footprint f;
  for (int fd = 0; fd < 1024; ++fd) {
    char target[4096];
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    const ssize_t n = ::readlink(link.c_str(), target, sizeof target);
    if (n >= 0)
      f.descriptors.insert(std::to_string(fd) + " " + std::string(target, static_cast<std::size_t>(n)));
  }
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream children(task.path() / "children");
    for (int pid = 0; children >> pid;)
      f.children.insert(pid);
  }
  return f;
}

}  // namespace ccbox::test
