// init's work after it has confined itself: one loop over the channel, ended children and commands that are
// starting.
//
// It never waits for anything else. Every `exec` is answered by `failed` or by `started` and then exactly one
// `exited`; a `signal` for a command that has ended is ignored, since both sides may act at once. The process
// ends, and with it everything it answers for, when the stream ends, when a frame makes no sense, or after
// `shutdown`.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "../unique_fd.hpp"
#include "channel.hpp"
#include "command.hpp"
#include "population.hpp"

namespace ccbox::init {

class supervisor {
 public:
  supervisor(channel& kernel_side, unique_fd signals, bool confined);
  [[noreturn]] void run();

 private:
  void wait_for_events();
  int wait_limit_ms() const;
  void take_requests();
  void act_on(frame& request);
  void start(frame& request);
  void signal(const frame& request);
  void begin_shutdown(const frame& request);
  void listen(const frame& request);
  void settle(std::size_t index);
  void settle_started();
  void reap();
  void ended(pid_t pid, int status);
  void kill_and_reap(int limit_ms);
  [[noreturn]] void finish_shutdown();
  [[noreturn]] void end(int code);
  command* find(std::uint64_t id);

  channel& channel_;
  unique_fd signals_;
  bool confined_;
  population population_;
  std::vector<command> commands_;
  std::optional<std::int64_t> deadline_ms_;  // shutdown has begun; CLOCK_MONOTONIC
  bool may_listen_;                          // until the first command, or the first listen
  bool more_to_reap_ = false;
  bool childless_ = false;
};

}  // namespace ccbox::init
