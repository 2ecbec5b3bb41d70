// A named FIFO of the caller's on the way to or from a pipe, by tee(2) and splice(2): they do not block,
// whatever mode the open file has that others share, and a FIFO that is read keeps what was not taken.
//
// Borrows the descriptor. Runs on one thread.
#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstddef>

#include "shared_watch.hpp"
#include "unique_fd.hpp"

namespace ccbox {

// Whether it has a name somewhere, and with it an owner and a mode.
bool is_named_fifo(int fd);

class fifo_stream {
 public:
  fifo_stream(const boost::asio::any_io_executor& executor, int fd, shared_watch::direction what);

  // Until it gives or takes something, or has ended; false: stop() was called.
  boost::asio::awaitable<bool> ready();
  void stop();

  // As write(2) to `pipe` of what can be read; it is read again until it is dropped.
  ssize_t copy_to(int pipe) const;
  void drop(std::size_t bytes) const;
  // As write(2) of what `pipe` has; 0: its end.
  ssize_t move_from(int pipe) const;

 private:
  const int fd_;
  shared_watch watch_;
  unique_fd nowhere_;  // /dev/null
  bool stopped_ = false;
};

}  // namespace ccbox
