#include "session_errors.hpp"

namespace ccbox {

error hinting_at_memory(error e, const std::optional<std::uint64_t>& memory_bytes) {
  constexpr std::uint64_t surely_enough = 16 << 20;
  if (memory_bytes && *memory_bytes < surely_enough && e.hint.empty()) {
    e.code = error_code::too_large;
    e.hint = "limits.memoryBytes is " + std::to_string(*memory_bytes) +
             ", and an enclosure alone takes some MiB: raise it";
  }
  return e;
}

error end_error(std::optional<kill_reason> why, const std::string& enclosure_reason) {
  if (why == kill_reason::oom) {
    return {error_code::too_large, "the session was ended: the kernel killed a process of it for memory",
            "raise limits.memoryBytes"};
  }
  if (why == kill_reason::timeout) {
    return {error_code::timeout, "the session was ended: its wall time is over", "raise limits.wallTimeMs"};
  }
  return {error_code::failed, "the enclosure ended unexpectedly: " + enclosure_reason, ""};
}

}  // namespace ccbox
