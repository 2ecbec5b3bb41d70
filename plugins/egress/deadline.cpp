#include "deadline.hpp"

namespace ccbox::egress {

deadline_queue::deadline_queue(asio::io_context& context) : context_(context) {}

void deadline_queue::shut() {
  shut_ = true;
  timer_.reset();
}

void deadline_queue::arm() {
  if (shut_ || entries_.empty() || entries_.begin()->first >= armed_) return;
  armed_ = entries_.begin()->first;
  if (!timer_) timer_.emplace(context_.get_executor());
  timer_->expires_at(armed_);
  timer_->async_wait([this](boost::system::error_code cancelled) {
    if (!cancelled) fire();
  });
}

void deadline_queue::fire() {
  armed_ = clock::time_point::max();
  const auto now = clock::now();
  while (!shut_ && !entries_.empty() && entries_.begin()->first <= now) {
    auto node = entries_.extract(entries_.begin());
    deadline* const one = node.mapped();
    one->queued_ = false;
    if (one->when_ == clock::time_point::max()) continue;
    if (one->when_ > now) {
      node.key() = one->when_;
      one->entry_ = entries_.insert(std::move(node));
      one->queued_ = true;
      continue;
    }
    one->when_ = clock::time_point::max();
    const auto passed = one->passed_;  // the deadline may not live to the end of the call
    passed();
  }
  arm();
}

deadline::deadline(deadline_queue& queue, std::function<void()> passed)
    : queue_(queue), passed_(std::move(passed)) {}

deadline::~deadline() {
  if (queued_) queue_.entries_.erase(entry_);
}

void deadline::at(clock::time_point when) {
  when_ = when;
  if (queued_ && entry_->first <= when) return;
  if (queued_) queue_.entries_.erase(entry_);
  entry_ = queue_.entries_.emplace(when, this);
  queued_ = true;
  queue_.arm();
}

}  // namespace ccbox::egress
