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

// Before main() the thread sanitizer makes a file of this name in TMPDIR, maps it and removes it: one that is
// killed then leaves it, and one that may not write it ends, unless TMPDIR is no directory.
inline const std::string sanitizer_file = "tsan.rodata.";
#if defined(__SANITIZE_THREAD__)
inline const std::string no_sanitizer_file = "export TMPDIR=/dev/null; ";
#else
inline const std::string no_sanitizer_file;
#endif

}  // namespace ccbox::test
