// An event that happens once, for coroutines of one strand: wait() resumes when it has happened, or at once
// if it has. Not thread-safe. Destroying it resumes the waiters.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace ccbox {

class gate {
 public:
  explicit gate(const boost::asio::any_io_executor& strand) : channel_(strand) {}
  void open() { channel_.close(); }
  bool is_open() const { return !channel_.is_open(); }
  boost::asio::awaitable<void> wait() {
    co_await channel_.async_receive(boost::asio::as_tuple(boost::asio::use_awaitable));
  }

 private:
  boost::asio::experimental::channel<void(boost::system::error_code)> channel_;
};

}  // namespace ccbox
