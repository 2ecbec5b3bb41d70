#include "session_reports.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

#include "denial.hpp"
#include "log.hpp"

namespace ccbox {

namespace asio = boost::asio;

namespace {

constexpr std::uint32_t flush_after_ms = 1000;

}  // namespace

session_reports::session_reports(asio::any_io_executor strand, const policy& rules, publisher to)
    : strand_(strand),
      rules_(rules),
      session_id_(rules.spec.session_id),
      to_(std::move(to)),
      pause_(strand) {}

void session_reports::watch_with(const monitor_plugin* monitor, const plan& how) {
  if (!monitor) return;
  {
    // The plugins may have gone with whoever let go of the session.
    const std::lock_guard lock(mutex_);
    if (abandoned_) return;
  }
  auto watch = monitor->open(rules_, how.enforced, how.denials > 0);
  if (!watch)
    return log_event(log_level::warn, "monitor_open",
                     {{"session", session_id_}, {"what", watch.error().what}});
  const std::lock_guard lock(mutex_);
  if (abandoned_) return;
  monitor_ = std::move(*watch);
  output_too_ = !how.unconfined;
}

std::shared_ptr<monitor_watch> session_reports::monitor() const {
  const std::lock_guard lock(mutex_);
  return monitor_;
}

void session_reports::background(asio::awaitable<void> work) {
  asio::co_spawn(strand_, std::move(work), [self = shared_from_this()](std::exception_ptr failure) {
    if (failure) log_event(log_level::error, "session_coroutine", {{"session", self->session_id_}});
  });
}

ccbox_status session_reports::push(sandbox_event event) {
  const auto taken = waiting_.push(std::move(event));
  if (taken == report_queue::answer::first) background(publish(shared_from_this(), false));
  if (taken == report_queue::answer::full) return CCBOX_TOO_LARGE;
  return taken == report_queue::answer::closed ? CCBOX_UNAVAILABLE : CCBOX_OK;
}

void session_reports::tell(std::vector<sandbox_event> events) {
  for (auto& event : events)
    push(std::move(event));
}

ccbox_status session_reports::report(std::string_view type, std::string_view json) {
  auto event = event_of_report(type, json, rules_.spec.capabilities, rules_.egress.withheld);
  if (!event) return CCBOX_INVALID;
  if (type == "denial") {
    if (const auto by = monitor()) {
      tell(by->denial(*event->violation));
      flush_soon();
      return CCBOX_OK;
    }
  }
  return push(std::move(*event));
}

void session_reports::observe(std::uint64_t exec_id, std::string_view bytes) {
  if (!output_too_) return;
  const auto by = monitor();
  if (!by) return;
  auto found = by->output(exec_id, bytes);
  if (found.empty()) return;
  tell(std::move(found));
  flush_soon();
}

void session_reports::flush_soon() {
  if (!flushing_.exchange(true)) background(flush_later(shared_from_this()));
}

asio::awaitable<void> session_reports::flush_later(std::shared_ptr<session_reports> self) {
  std::uint32_t after_ms = flush_after_ms;
  do {
    if (self->over_) co_return;
    self->pause_.expires_after(std::chrono::milliseconds(after_ms));
    co_await self->pause_.async_wait(asio::as_tuple(asio::use_awaitable));
    // A denial that comes from here on starts anew.
    self->flushing_ = false;
    const auto by = self->monitor();
    if (self->over_ || !by) co_return;
    auto told = by->flush(false);
    self->tell(std::move(told.events));
    after_ms = told.again_ms;
  } while (after_ms > 0 && !self->flushing_.exchange(true));
}

asio::awaitable<void> session_reports::publish(std::shared_ptr<session_reports> self, bool last) {
  if (last) {
    self->over_ = true;
    self->pause_.cancel();
    std::shared_ptr<monitor_watch> by;
    {
      const std::lock_guard lock(self->mutex_);
      by.swap(self->monitor_);
    }
    if (by) self->tell(by->flush(true).events);
    if (by) by->close();
  }
  while (auto event = self->waiting_.next(last))
    co_await self->to_(std::move(*event));
  if (last && self->waiting_.dropped() > 0)
    log_event(log_level::warn, "reports_dropped",
              {{"session", self->session_id_}, {"count", self->waiting_.dropped()}});
}

void session_reports::abandon() noexcept {
  std::shared_ptr<monitor_watch> by;
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
    by.swap(monitor_);
  }
  if (by) by->close();
}

}  // namespace ccbox
