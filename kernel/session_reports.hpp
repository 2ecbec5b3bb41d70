// What is told of a session beside its commands' output: the reports of plugins, through the monitor where
// there is one, on their way to the subscribers.
//
// Without a monitor each denial is an event as it comes. With one it is the monitor that says what becomes an
// event; it is asked once a second for what it has counted, as long as there is something, and once more at
// the end.
//
// Any thread, but for publish().
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "monitor.hpp"
#include "plan.hpp"
#include "policy.hpp"
#include "report_queue.hpp"
#include "sandbox_event.hpp"

namespace ccbox {

class session_reports : public std::enable_shared_from_this<session_reports> {
 public:
  using publisher = std::function<boost::asio::awaitable<void>(sandbox_event)>;

  // `rules` must outlive every call of report(). `to` runs on the strand.
  session_reports(boost::asio::any_io_executor strand, const policy& rules, publisher to);

  // `monitor` null, or one that cannot: the session goes on without, because nothing that it protects rests
  // on it. Where there is no boundary, what commands write is not shown to it.
  void watch_with(const monitor_plugin* monitor, const plan& how);

  // An event that a plugin has for the session. Never waits: too many that nobody has taken yet are counted,
  // logged and dropped.
  ccbox_status report(std::string_view type, std::string_view json);
  // What a command wrote to its standard error or terminal; empty: it has ended.
  void observe(std::uint64_t exec_id, std::string_view bytes);

  // On the strand: all that waits; `last`: what the monitor still has too, and nothing is taken any more.
  static boost::asio::awaitable<void> publish(std::shared_ptr<session_reports> self, bool last);
  // The monitor is gone when it returns, with what it had counted.
  void abandon() noexcept;

 private:
  std::shared_ptr<monitor_watch> monitor() const;
  void tell(std::vector<sandbox_event> events);
  ccbox_status push(sandbox_event event);
  void background(boost::asio::awaitable<void> work);
  void flush_soon();
  static boost::asio::awaitable<void> flush_later(std::shared_ptr<session_reports> self);

  const boost::asio::any_io_executor strand_;
  const policy& rules_;
  const std::string session_id_;
  const publisher to_;
  report_queue waiting_;
  mutable std::mutex mutex_;
  std::shared_ptr<monitor_watch> monitor_;  // under mutex_
  bool abandoned_ = false;                  // under mutex_
  std::atomic<bool> output_too_ = false;
  std::atomic<bool> flushing_ = false;  // somebody is going to
  boost::asio::steady_timer pause_;     // strand
  bool over_ = false;                   // strand
};

}  // namespace ccbox
