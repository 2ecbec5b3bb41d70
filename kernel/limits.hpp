// Resource limits: cgroups where this user may make them, rlimits elsewhere. What neither mechanism can
// enforce is an error, not a warning.
//
//  - memory: of the whole session, swap included (cgroup); else the address space of each process
//    (RLIMIT_AS).
//  - processes: commands and theirs at any one time, ccbox's own two not counted (cgroup); else RLIMIT_NPROC,
//    which counts the enclosure's processes where it has a user namespace of its own, and does not bind root
//    at all.
//  - cpus: cgroup only. File size: RLIMIT_FSIZE. Wall time: the session's timer.
//
// [any thread]
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "process.hpp"
#include "result.hpp"
#include "sandbox_spec.hpp"

namespace ccbox {

struct limit_capability {
  std::string memory, cpus, processes, file_size,
      wall_time;     // "cgroup v1", "cgroup v2", "rlimit", "timer", "" = none
  std::string note;  // one line for probe
};
limit_capability probe_limits();

// What the mechanisms depend on.
struct limit_context {
  std::string init_path;            // ccbox-init, whose janitor mode guards the cgroups
  bool own_user_namespace = false;  // the commands' ids are counted apart from this user's other processes
  // Tasks in the cgroup of the commands that are none of theirs.
  std::uint64_t own_tasks = 2;  // the launcher and ccbox-init
};

// What create() would refuse, without making anything.
result<void> check_limits(const resource_limits& limits, bool own_user_namespace);

// Limit → mechanism, as details() of a group that create() would make; its error otherwise.
result<std::vector<std::pair<std::string, std::string>>> limit_mechanisms(const resource_limits& limits,
                                                                          bool own_user_namespace);

// The mechanism of a memory limit that is not one of the session: no memory cgroup can be made.
constexpr std::string_view memory_by_process = "rlimit, address space of each process";
// What people are told where it is the one in use.
constexpr std::string_view memory_by_process_warning =
    "the memory limit holds for the address space of each process, not for the session as a whole: no memory "
    "cgroup can be made here (`ccbox probe` says why)";

class limit_group {
 public:
  // unenforceable: names the limit that this host cannot set and why.
  static result<limit_group> create(const resource_limits& limits, const std::string& session_id,
                                    const limit_context& where);
  limit_group();
  limit_group(limit_group&&) noexcept;
  limit_group& operator=(limit_group&&) noexcept;
  ~limit_group();  // kills what is left in it and removes it

  const std::vector<std::string>& cgroup_directories() const;                   // for spawn_request
  const std::vector<std::pair<std::uint32_t, std::uint64_t>>& rlimits() const;  // for every command
  // The kernel killed something in it for memory. Without a memory cgroup it is never known.
  bool out_of_memory() const;
  std::vector<std::pair<std::string, std::string>> details() const;  // limit → mechanism, for the handle

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace ccbox
