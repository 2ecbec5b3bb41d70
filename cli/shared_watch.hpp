// Waits for a descriptor whose open file others share, without a change of its mode: Asio makes what it
// watches itself non-blocking, for everybody.
//
// What is ready gives or takes at least PIPE_BUF bytes without blocking, as long as nobody else reads or
// writes the same end at that moment. Files and whatever else cannot be watched are always ready. One thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>

namespace ccbox {

class shared_watch {
 public:
  enum class direction { read, write };

  // Borrows `fd`, which must be a blocking descriptor's number as long as this lives.
  shared_watch(const boost::asio::any_io_executor& executor, int fd, direction what);

  bool always_ready() const { return !around_.is_open(); }
  bool is_ready() const;
  // Until it is ready, the time is over, or cancel(): is_ready() tells.
  boost::asio::awaitable<void> wait(std::chrono::milliseconds at_most);
  void cancel();

 private:
  const int fd_;
  const direction what_;
  boost::asio::posix::stream_descriptor around_;  // an epoll descriptor that watches fd_
  boost::asio::steady_timer limit_;
};

}  // namespace ccbox
