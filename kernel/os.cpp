#include "os.hpp"

#include <unistd.h>

#include <cerrno>

namespace ccbox::os {

std::atomic<hook> test_hook{nullptr};

__attribute__((no_sanitize("address", "thread", "undefined"))) bool intercepted(long number,
                                                                                const long (&arguments)[6],
                                                                                long& answer) {
  const hook h = test_hook.load(std::memory_order_relaxed);
  return h != nullptr && h(number, arguments, answer);
}

__attribute__((no_sanitize("address", "thread", "undefined"))) long raw_call(long number,
                                                                             const long (&arguments)[6]) {
  long answer = 0;
  if (intercepted(number, arguments, answer)) {
    if (answer >= 0) return answer;
    errno = static_cast<int>(-answer);
    return -1;
  }
  const long* a = arguments;
  return ::syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

}  // namespace ccbox::os
