// The door through which process, cgroup and enclosure code calls Linux, so that a test can make call number
// N fail, or answer it itself. A raw system call: it may be used between clone and exec, where the child
// shares our memory.
#pragma once

#include <atomic>
#include <type_traits>

namespace ccbox::os {

// True: `answer` (−errno on failure) stands for the call, which is not made.
using hook = bool (*)(long number, const long (&arguments)[6], long& answer);

// Tests only; null otherwise. [any thread]
extern std::atomic<hook> test_hook;

bool intercepted(long number, const long (&arguments)[6], long& answer);

// As syscall(2): −1 and errno on failure.
long raw_call(long number, const long (&arguments)[6]);

template <class T>
long as_word(T value) {
  if constexpr (std::is_null_pointer_v<T>)
    return 0;
  else if constexpr (std::is_pointer_v<T>)
    return reinterpret_cast<long>(value);
  else
    return static_cast<long>(value);
}

template <class... Arguments>
__attribute__((always_inline, no_sanitize("address", "thread", "undefined"))) inline long call(
    long number, Arguments... arguments) {
  static_assert(sizeof...(Arguments) <= 6);
  const long words[6] = {as_word(arguments)...};
  return raw_call(number, words);
}

}  // namespace ccbox::os
