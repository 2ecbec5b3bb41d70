// The events of one session on their way to the bus: one at a time, whoever publishes.
//
// Coroutines run on the session's strand, which must keep this object as long as they do. The bus may be gone
// already when the last of them run.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <functional>
#include <string>

#include "event_bus.hpp"
#include "sandbox_event.hpp"

namespace ccbox {

class session_events {
 public:
  session_events(const boost::asio::any_io_executor& strand, const event_bus& bus, std::string session_id);

  // Waits for its turn, and for subscribers that are slow.
  boost::asio::awaitable<void> publish(sandbox_event event);

 private:
  const std::string session_id_;
  const std::function<boost::asio::awaitable<void>(sandbox_event)> to_bus_;
  // Holds one token: one publisher at a time.
  boost::asio::experimental::channel<void(boost::system::error_code)> turn_;
};

}  // namespace ccbox
