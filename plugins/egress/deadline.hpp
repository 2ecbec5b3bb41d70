// Time limits by the hundred on one timer: a limit that is moved or cleared, as almost all are, costs no
// system call. On one worker's thread only.
#pragma once

#include <boost/asio/basic_waitable_timer.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <optional>

#include "stream.hpp"

namespace ccbox::egress {

class deadline;

class deadline_queue {
 public:
  using clock = std::chrono::steady_clock;
  // `context` is not used before the first limit is set.
  explicit deadline_queue(asio::io_context& context);
  deadline_queue(const deadline_queue&) = delete;
  // Nothing passes any more, and the context has no work from here. Before the context is destroyed.
  void shut();

 private:
  friend class deadline;
  using entries = std::multimap<clock::time_point, deadline*>;
  void arm();
  void fire();
  asio::io_context& context_;
  std::optional<asio::basic_waitable_timer<clock, asio::wait_traits<clock>, io_executor>> timer_;
  clock::time_point armed_ = clock::time_point::max();
  entries entries_;
  bool shut_ = false;
};

// One limit. `passed` is called once per set(), and may destroy the deadline. Must not outlive its queue.
class deadline {
 public:
  using clock = deadline_queue::clock;
  deadline(deadline_queue& queue, std::function<void()> passed);
  ~deadline();
  deadline(const deadline&) = delete;
  deadline& operator=(const deadline&) = delete;

  void at(clock::time_point when);
  void after(std::chrono::milliseconds limit) { at(clock::now() + limit); }
  void clear() { when_ = clock::time_point::max(); }

 private:
  friend class deadline_queue;
  deadline_queue& queue_;
  std::function<void()> passed_;
  clock::time_point when_ = clock::time_point::max();
  // Where the queue looks at it: not after `when_`. A later `when_` moves it only once it is looked at.
  deadline_queue::entries::iterator entry_;
  bool queued_ = false;
};

}  // namespace ccbox::egress
