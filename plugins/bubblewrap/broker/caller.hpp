// The task whose system call waits for an answer: everything that is read of it.
//
// Each of these is read once a call and kept: what the task changes meanwhile changes which operation is
// checked and done, never whether it is checked. Should the task end and its number go to another one, that
// one's paths and descriptors lead nowhere inside unless it is in the enclosure, too.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "broker/host_proc.hpp"
#include "descriptor.hpp"

namespace ccbox::bubblewrap {

// Numbers of a task as its own processes see them.
struct inner_ids {
  int process = 0, task = 0;  // 0: unknown
};

class caller {
 public:
  caller(const host_proc& proc, pid_t task) : proc_(proc), task_(task) {}

  pid_t task() const { return task_; }
  const host_proc& proc() const { return proc_; }

  // A path argument. 0, or EFAULT or ENAMETOOLONG as the kernel would say.
  int read_path(std::uint64_t address, std::string& path) const;
  // 0 or EFAULT.
  int read_bytes(std::uint64_t address, void* into, std::size_t size) const;

  // The directory that `directory_fd`, AT_FDCWD too, means; O_PATH. Not open: errno is what the kernel would
  // say.
  descriptor base(int directory_fd) const;
  descriptor descriptor_number(int number) const;  // O_PATH or the very one; not open: EBADF in errno

  inner_ids ids() const;
  std::string program() const;  // as the enclosure sees it; empty: unknown

 private:
  const host_proc& proc_;
  const pid_t task_;
};

// What new files of a task are created with. Read at most every few milliseconds a task: reading costs as
// much as a whole creation, and it only bears on modes.
class umask_memory {
 public:
  mode_t of(const caller& who);
  void forget();  // some task sets it now

 private:
  struct entry {
    pid_t task = 0;
    mode_t mask = 0;
    std::int64_t until_ms = 0;
  };
  static constexpr std::size_t slots = 64;
  entry entries_[slots];
  std::int64_t quiet_until_ms_ = 0;
};

}  // namespace ccbox::bubblewrap
