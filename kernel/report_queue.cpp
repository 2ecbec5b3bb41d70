#include "report_queue.hpp"

#include <utility>

namespace ccbox {

report_queue::answer report_queue::push(sandbox_event report) {
  const std::lock_guard lock(mutex_);
  if (closed_) return answer::closed;
  if (waiting_.size() >= limit_) {
    ++dropped_;
    return answer::full;
  }
  waiting_.push_back(std::move(report));
  return std::exchange(publishing_, true) ? answer::taken : answer::first;
}

std::optional<sandbox_event> report_queue::next(bool last) {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty()) {
    closed_ = closed_ || last;
    publishing_ = false;
    return std::nullopt;
  }
  auto report = std::move(waiting_.front());
  waiting_.pop_front();
  return report;
}

std::size_t report_queue::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

}  // namespace ccbox
