// The events of one session on their way to the bus: one at a time, whoever publishes, and what plugins
// report among them.
//
// Coroutines run on the session's strand, which must keep this object as long as they do; take_report() may
// be called on any thread. The bus may be gone already when the last of them run.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <functional>
#include <string>

#include "event_bus.hpp"
#include "report_queue.hpp"
#include "sandbox_event.hpp"

namespace ccbox {

class session_events {
 public:
  session_events(const boost::asio::any_io_executor& strand, const event_bus& bus, std::string session_id);

  // Waits for its turn, and for subscribers that are slow.
  boost::asio::awaitable<void> publish(sandbox_event event);

  // Never waits. On `first` the caller starts publish_reports(false).
  report_queue::answer take_report(sandbox_event report) { return reports_.push(std::move(report)); }
  // Publishes those that were taken. `last`: none is taken any more, and those that were dropped are logged.
  boost::asio::awaitable<void> publish_reports(bool last);

 private:
  const std::string session_id_;
  const std::function<boost::asio::awaitable<void>(sandbox_event)> to_bus_;
  // Holds one token: one publisher at a time.
  boost::asio::experimental::channel<void(boost::system::error_code)> turn_;
  report_queue reports_;
};

}  // namespace ccbox
