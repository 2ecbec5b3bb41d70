// Resource limits: cgroups where this user may make them, rlimits elsewhere.
//
// A cgroup is one directory per controller hierarchy (v1) or one (v2), named ccbox-<pid>-<start time>-<session>; those
// of dead owners are swept when the next one is made. What neither mechanism can enforce is an error, not a warning.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "process.hpp"
#include "result.hpp"
#include "sandbox_spec.hpp"

namespace ccbox {

struct limit_capability {
  std::string memory, cpus, processes, file_size, wall_time;  // "cgroup v1", "cgroup v2", "rlimit", "timer", "" = none
  std::string note;                                           // one line for probe
};
limit_capability probe_limits();

class limit_group {
 public:
  // unenforceable: names the limit that this host cannot set and why.
  static result<limit_group> create(const resource_limits& limits, const std::string& session_id);
  limit_group();
  limit_group(limit_group&&) noexcept;
  limit_group& operator=(limit_group&&) noexcept;
  ~limit_group();  // kills what is left in it and removes it

  const std::vector<std::string>& cgroup_directories() const;                   // for spawn_request
  const std::vector<std::pair<std::uint32_t, std::uint64_t>>& rlimits() const;  // for every command
  bool out_of_memory() const;  // the kernel killed something in it for memory
  std::vector<std::pair<std::string, std::string>> details() const;  // limit → mechanism, for the handle

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace ccbox
