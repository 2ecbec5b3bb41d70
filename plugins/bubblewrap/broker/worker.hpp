// Answers the calls that the filter hands over, one after the other.
//
// One at a time is the point: a name is checked and made in one critical section, so no other call that goes
// through here can move a directory in between. The only other thread is the one that waits for readers of
// FIFOs; it takes the same lock.
//
// What a call takes besides two switches of processes: receiving; reading the path; opening the directory
// that it begins in, through /proc, for no call takes another task's; having the kernel resolve the parent;
// asking where that is, for globs are about paths; the act; closing; answering. An opened file takes F_SETFL
// and two switches more (listener::put_descriptor). Nothing of that can be kept for the next call: the
// caller may have changed it since.
#pragma once

#include <linux/seccomp.h>

#include <condition_variable>
#include <mutex>
#include <vector>

#include "broker/desk.hpp"
#include "broker/notification.hpp"
#include "broker/opening.hpp"

namespace ccbox::bubblewrap {

class worker {
 public:
  worker(const listener& calls, const host_proc& proc, desk& with)
      : calls_(calls), proc_(proc), desk_(with) {}

  [[noreturn]] void run();
  [[noreturn]] void wait_for_readers();  // on a thread of its own

 private:
  struct parked {
    std::uint64_t id;
    pid_t task;
    open_request asked;
  };
  void answer(const seccomp_notif& call);
  bool open(const seccomp_notif& call, const caller& who, open_request asked);  // false: parked
  outcome act(const seccomp_notif& call, const caller& who);
  void answer(std::uint64_t id, const outcome& with) const;

  const listener& calls_;
  const host_proc& proc_;
  desk& desk_;
  std::mutex mutex_;
  std::condition_variable parked_something_;
  std::vector<parked> parked_;
};

}  // namespace ccbox::bubblewrap
