// What plugins have reported of a session and its subscribers have not got yet: bounded, so that a command
// that provokes a flood of refusals costs no memory. What does not fit is counted.
//
// Any thread.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>

#include "sandbox_event.hpp"

namespace ccbox {

class report_queue {
 public:
  explicit report_queue(std::size_t limit = 1000) : limit_(limit) {}

  enum class answer {
    taken,  // whoever publishes gets to it
    first,  // nobody publishes: the caller starts to, with next() until there is nothing
    full,
    closed,
  };
  answer push(sandbox_event report);

  // Nothing: it is empty and the caller has ceased to publish; with `last`, nothing is taken any more either.
  std::optional<sandbox_event> next(bool last);
  std::size_t dropped() const;

 private:
  const std::size_t limit_;
  mutable std::mutex mutex_;
  std::deque<sandbox_event> waiting_;
  bool publishing_ = false, closed_ = false;
  std::size_t dropped_ = 0;
};

}  // namespace ccbox
