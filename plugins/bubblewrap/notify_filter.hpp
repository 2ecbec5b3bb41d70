// The system-call filter whose listener the broker holds: it hands over the calls that can make, open for
// writing, rename, link, remove or truncate a name, and nothing else. `open` and `openat` tell by their
// flags, which are in a register: what opens for reading is never stopped.
#pragma once

#include <cstdint>
#include <string>

namespace ccbox::bubblewrap {

enum class filter_machine { x86_64, aarch64 };

constexpr filter_machine native_machine =
#if defined(__aarch64__)
    filter_machine::aarch64;
#else
    filter_machine::x86_64;
#endif

// struct sock_filter[].
std::string build_notify_filter(filter_machine machine = native_machine);

}  // namespace ccbox::bubblewrap
