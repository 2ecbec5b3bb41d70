#include "session_errors.hpp"

namespace ccbox {

error hinting_at_limits(error e, const resource_limits& limits) {
  if (!e.hint.empty()) return e;
  constexpr std::uint64_t surely_enough = 16 << 20;
  if (e.what.find("Resource temporarily unavailable") != std::string::npos) {
    e.hint =
        "no further process or thread may be made: raise `ulimit -u`, pids.max of the cgroup that this runs "
        "in" +
        std::string(limits.processes ? " or limits.processes" : "") + ", or end some processes of this user";
  } else if (limits.memory_bytes && *limits.memory_bytes < surely_enough) {
    e.code = error_code::too_large;
    e.hint = "limits.memoryBytes is " + std::to_string(*limits.memory_bytes) +
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
