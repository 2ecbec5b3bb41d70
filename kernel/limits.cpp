#include "limits.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "cgroup.hpp"

namespace ccbox {
namespace {

constexpr std::uint64_t cpu_period_us = 100000;

std::string mechanism(const cgroup_place& place) {
  return "cgroup v" + std::to_string(place.version);
}

// RLIMIT_NPROC never binds the root of the machine. Of a nested namespace we see one level of the map only,
// so id 0 that maps to 0 is taken for it.
bool is_machine_root() {
  if (::getuid() != 0) return false;
  std::ifstream map("/proc/self/uid_map");
  std::uint64_t inside = 0, outside = 0;
  return !(map >> inside >> outside) || outside == 0;
}

error unenforceable(const std::string& limit, const error& why, const std::string& also) {
  return {error_code::unenforceable, "limit " + limit + " cannot be enforced here: " + why.what + also,
          why.hint};
}

// The groups for the limits that were asked for and can have one; the others are an rlimit's job.
struct chosen_places {
  std::optional<cgroup_place> memory, processes, cpus;
};

result<chosen_places> choose_places(const resource_limits& limits, bool own_user_namespace) {
  chosen_places chosen;
  if (limits.memory_bytes) {
    if (auto place = find_cgroup_place("memory")) chosen.memory = *place;
  }
  if (limits.processes) {
    if (auto place = find_cgroup_place("pids")) {
      chosen.processes = *place;
    } else if (is_machine_root()) {
      return unenforceable("processes", place.error(), ", and rlimits do not bind root");
    } else if (!own_user_namespace) {
      return unenforceable("processes", place.error(),
                           ", and without a user namespace an rlimit counts all that this user runs");
    }
  }
  if (limits.cpus) {
    auto place = find_cgroup_place("cpu");
    if (!place) return unenforceable("cpus", place.error(), "");
    chosen.cpus = *place;
  }
  return chosen;
}

std::vector<std::pair<std::string, std::string>> mechanisms_of(const resource_limits& limits,
                                                               const chosen_places& chosen) {
  const auto of_session = [](const std::optional<cgroup_place>& place) {
    return (place ? mechanism(*place) : "rlimit") + ", of the session";
  };
  std::vector<std::pair<std::string, std::string>> out;
  if (limits.memory_bytes)
    out.emplace_back("memory", chosen.memory ? of_session(chosen.memory) : std::string(memory_by_process));
  if (limits.processes) out.emplace_back("processes", of_session(chosen.processes));
  if (limits.cpus) out.emplace_back("cpus", of_session(chosen.cpus));
  if (limits.file_size_bytes) out.emplace_back("fileSize", "rlimit, of each file");
  if (limits.wall_time_ms) out.emplace_back("wallTime", "timer, of the session");
  return out;
}

}  // namespace

limit_capability probe_limits() {
  limit_capability c;
  const auto memory = find_cgroup_place("memory"), processes = find_cgroup_place("pids"),
             cpus = find_cgroup_place("cpu");
  c.memory = memory ? mechanism(*memory) : "rlimit";
  c.processes = processes ? mechanism(*processes) : is_machine_root() ? "" : "rlimit";
  c.cpus = cpus ? mechanism(*cpus) : "";
  c.file_size = "rlimit";
  c.wall_time = "timer";
  for (const auto* place : {&memory, &processes, &cpus}) {
    if (!*place && c.note.find(place->error().what) == std::string::npos) {
      c.note += (c.note.empty() ? "" : "; ") + place->error().what;
    }
  }
  if (c.note.empty()) c.note = "memory, processes and processors are limited by cgroups";
  return c;
}

struct limit_group::impl {
  std::vector<cgroup> groups;
  std::vector<std::string> directories;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> rlimits;
  std::vector<std::pair<std::string, std::string>> details;
  const cgroup* memory = nullptr;  // stable: `groups` is reserved

  void set_rlimit(int resource, std::uint64_t value) {
    rlimits.emplace_back(static_cast<std::uint32_t>(resource), value);
  }

  // Controllers that share a hierarchy share a group.
  result<const cgroup*> group_at(const cgroup_place& place, const std::string& session_id,
                                 const std::string& init_path) {
    for (const cgroup& g : groups) {
      if (g.directory().starts_with(place.directory + "/ccbox-")) return &g;
    }
    auto made = cgroup::create(place, session_id, init_path);
    if (!made) return made.error();
    directories.push_back(made->directory());
    groups.push_back(std::move(*made));
    return &groups.back();
  }
};

namespace {

result<void> limit_memory(const cgroup& group, std::uint64_t bytes) {
  const std::string value = std::to_string(bytes);
  if (group.version() == 1) {
    if (auto ok = group.set("memory.limit_in_bytes", value); !ok) return ok;
    if (group.has("memory.memsw.limit_in_bytes")) return group.set("memory.memsw.limit_in_bytes", value);
    return {};
  }
  if (auto ok = group.set("memory.max", value); !ok) return ok;
  if (group.has("memory.swap.max")) {
    if (auto ok = group.set("memory.swap.max", "0"); !ok) return ok;
  }
  return group.has("memory.oom.group") ? group.set("memory.oom.group", "1") : result<void>{};
}

result<void> limit_cpus(const cgroup& group, double cpus) {
  const auto quota = static_cast<std::uint64_t>(std::llround(cpus * static_cast<double>(cpu_period_us)));
  const std::string quota_us = std::to_string(std::max<std::uint64_t>(quota, 1000));  // the kernel's least
  if (group.version() == 2) return group.set("cpu.max", quota_us + " " + std::to_string(cpu_period_us));
  if (auto ok = group.set("cpu.cfs_period_us", std::to_string(cpu_period_us)); !ok) return ok;
  return group.set("cpu.cfs_quota_us", quota_us);
}

}  // namespace

result<void> check_limits(const resource_limits& limits, bool own_user_namespace) {
  const auto chosen = choose_places(limits, own_user_namespace);
  return chosen ? result<void>{} : result<void>(chosen.error());
}

result<std::vector<std::pair<std::string, std::string>>> limit_mechanisms(const resource_limits& limits,
                                                                          bool own_user_namespace) {
  const auto chosen = choose_places(limits, own_user_namespace);
  if (!chosen) return chosen.error();
  return mechanisms_of(limits, *chosen);
}

result<limit_group> limit_group::create(const resource_limits& limits, const std::string& session_id,
                                        const limit_context& where) {
  const auto chosen = choose_places(limits, where.own_user_namespace);
  if (!chosen) return chosen.error();
  limit_group made;
  impl& self = *made.impl_;
  self.groups.reserve(3);
  auto group_at = [&](const cgroup_place& place) {
    return self.group_at(place, session_id, where.init_path);
  };

  if (chosen->memory) {
    const auto group = group_at(*chosen->memory);
    if (!group) return group.error();
    if (auto ok = limit_memory(**group, *limits.memory_bytes); !ok) return ok.error();
    self.memory = *group;
  } else if (limits.memory_bytes) {
    self.set_rlimit(RLIMIT_AS, *limits.memory_bytes);
  }
  if (chosen->processes) {
    const auto group = group_at(*chosen->processes);
    if (!group) return group.error();
    const std::string most = std::to_string(*limits.processes + where.own_tasks);
    if (auto ok = (*group)->set("pids.max", most); !ok) return ok.error();
  } else if (limits.processes) {
    // Counted in the enclosure's user namespace, where ccbox-init alone is not the commands'.
    self.set_rlimit(RLIMIT_NPROC, *limits.processes + 1);
  }
  if (chosen->cpus) {
    const auto group = group_at(*chosen->cpus);
    if (!group) return group.error();
    if (auto ok = limit_cpus(**group, *limits.cpus); !ok) return ok.error();
  }
  if (limits.file_size_bytes) self.set_rlimit(RLIMIT_FSIZE, *limits.file_size_bytes);
  self.details = mechanisms_of(limits, *chosen);
  return made;
}

limit_group::limit_group() : impl_(std::make_unique<impl>()) {}
limit_group::limit_group(limit_group&&) noexcept = default;
limit_group& limit_group::operator=(limit_group&&) noexcept = default;
limit_group::~limit_group() = default;

const std::vector<std::string>& limit_group::cgroup_directories() const {
  return impl_->directories;
}

const std::vector<std::pair<std::uint32_t, std::uint64_t>>& limit_group::rlimits() const {
  return impl_->rlimits;
}

bool limit_group::out_of_memory() const {
  const cgroup* group = impl_->memory;
  if (group == nullptr) return false;
  const char* file = group->version() == 2 ? "memory.events" : "memory.oom_control";
  return group->counter(file, "oom_kill").value_or(0) > 0;
}

std::vector<std::pair<std::string, std::string>> limit_group::details() const {
  return impl_->details;
}

}  // namespace ccbox
