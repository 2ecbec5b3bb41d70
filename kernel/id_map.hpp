// The id maps of a child that is born into a new user namespace: every id that exists here, mapped to itself.
// For a root caller; a user's own namespace is the launcher's affair.
#pragma once

#include <memory>
#include <thread>

#include "result.hpp"
#include "unique_fd.hpp"

namespace ccbox {

// Only a process outside may write them, and the thread that spawns stands still until the child executes: so
// it is a thread of its own, for some microseconds. The child writes its pid to child_end() and reads the
// answer, an errno.
class id_map_writer {
 public:
  static result<std::unique_ptr<id_map_writer>> start();
  id_map_writer(const id_map_writer&) = delete;
  id_map_writer& operator=(const id_map_writer&) = delete;
  ~id_map_writer();
  int child_end() const { return child_end_.get(); }

 private:
  id_map_writer() = default;

  unique_fd child_end_, our_end_;
  std::thread thread_;
};

}  // namespace ccbox
