#include "support/os_faults.hpp"

#include <unistd.h>

#include <atomic>

#include "os.hpp"
#include "support/waiting.hpp"

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

std::ostream& operator<<(std::ostream& out, const footprint& f) {
  for (const std::string& d : f.descriptors)
    out << d << '\n';
  for (int c : f.children)
    out << "child " << c << '\n';
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
  for (pid_t pid : children_of(::getpid()))
    f.children.insert(pid);
  return f;
}

}  // namespace ccbox::test
