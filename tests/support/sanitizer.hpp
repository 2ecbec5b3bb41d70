// What a build with sanitizers asks of the tests; nothing in one without.
#pragma once

#include <string>

namespace ccbox::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

// For programs of ours inside an enclosure: a search for leaks at their end needs ptrace, which the base
// filter refuses, and fails the program.
inline const std::string no_leak_search = "ASAN_OPTIONS=detect_leaks=0";

}  // namespace ccbox::test
