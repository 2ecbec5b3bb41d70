// Starting and owning one process of the host. Nothing else of a launch forks.
//
// What a child inherits is the list in `descriptors` and nothing else (close_range): signal handlers, ignored
// signals and the signal mask start afresh. Unless it is told to outlive its parent, it dies with the
// *thread* that spawned it (PDEATHSIG): spawn it from one that lives as long as it does. [any thread]
//
// spawn() costs a vfork whatever the size of the caller: the calling thread stands still until the child has
// executed. process_linux.cpp holds the Linux side.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "result.hpp"
#include "unique_fd.hpp"

namespace ccbox {

struct spawn_request {
  std::vector<std::string> argv = {};  // argv[0] absolute: no PATH search
  std::vector<std::pair<std::string, std::string>> env = {};
  std::vector<std::pair<int, int>> descriptors = {};  // ours → the child's number; 0..2 missing: /dev/null
  bool new_session = true;
  bool outlives_parent = false;  // no PDEATHSIG: it ends by itself when a descriptor of ours closes
  // See CCBOX_PLAN_IDENTITY_USERNS; with a private mount namespace in which /dev is read-only.
  bool identity_userns = false;
  std::vector<std::string> cgroup_directories = {};  // the child puts itself into each before exec
  // RLIMIT_*, soft = hard; one that is above the present hard limit leaves that.
  std::vector<std::pair<int, std::uint64_t>> rlimits = {};
};

struct exit_status {
  bool signalled = false;
  int value = 0;  // exit code, or signal number
  int code() const { return signalled ? 128 + value : value; }
};

// Owns a child through its pidfd. Destroying it kills (SIGKILL) and reaps. If somebody else reaped it (a
// SIGCHLD that is ignored, a stray wait), its end is known but not its status: that reads as exit code 255.
class child {
 public:
  child(pid_t pid, unique_fd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  child(child&& other) noexcept;
  child& operator=(child&& other) noexcept;
  ~child();

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }  // readable when it has ended
  result<void> signal(int number) const;      // through the pidfd: never a recycled pid
  std::optional<exit_status> try_wait();      // reaps if it has ended
  result<exit_status> wait();                 // blocks

 private:
  pid_t pid_ = -1;
  unique_fd pidfd_;
  std::optional<exit_status> status_;
};

// Errors say which step failed: exec, a cgroup, the id map, a limit.
result<child> spawn(const spawn_request& request);

// An empty memfd that can be sealed. `name` is for /proc only.
enum class memory_use { data, program };
result<unique_fd> memory_file(const std::string& name, memory_use use = memory_use::data);

// A read-only sealed memfd with these bytes, at offset 0.
result<unique_fd> sealed_file(const std::string& name, std::string_view bytes);
// The same with what `source`, a regular file, holds from its offset on: at most `most` bytes of it.
result<unique_fd> sealed_copy(const std::string& name, int source, std::size_t most,
                              memory_use use = memory_use::data);

}  // namespace ccbox
