// One control group: a directory, made below the group this process is in (or beside it, on cgroup v2, where
// a group with processes can have none below), ended and removed with the object.
//
// Named ccbox-<pid>-<start time>-<pid namespace>-<session>; create() sweeps those of dead owners, and a
// janitor process (see init/janitor.hpp) removes the groups of an owner that was killed. [any thread]
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "result.hpp"

namespace ccbox {

// Where a group with some controller can be made.
struct cgroup_place {
  int version = 0;        // 1 or 2
  std::string directory;  // the new group goes directly below it
  bool operator==(const cgroup_place&) const = default;
};

// `controller`: memory, pids, cpu. unavailable: says what is missing. Changes nothing.
//
// A place never escapes a limit: on v2 a sibling of our own group is only used for a controller that does not
// limit our group.
result<cgroup_place> find_cgroup_place(std::string_view controller);

class cgroup {
 public:
  // `init_path`: ccbox-init, which the janitor is run from.
  static result<cgroup> create(const cgroup_place& place, const std::string& session_id,
                               const std::string& init_path);
  cgroup(cgroup&& other) noexcept;
  cgroup& operator=(cgroup&& other) noexcept;
  ~cgroup();  // kills what is left in it; what cannot be removed at once, the janitor goes on with

  const std::string& directory() const { return directory_; }
  int version() const { return version_; }
  bool has(const std::string& file) const;
  result<void> set(const std::string& file, const std::string& value) const;
  std::string get(const std::string& file) const;  // empty if it cannot be read
  // The number after `key` in a file of "key value" lines.
  std::optional<std::uint64_t> counter(const std::string& file, std::string_view key) const;

 private:
  cgroup(int version, std::string directory) : version_(version), directory_(std::move(directory)) {}
  int version_ = 0;
  std::string directory_;
};

}  // namespace ccbox
