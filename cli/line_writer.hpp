// Lines for a reader that may be slow: they wait here, and never hold up the thread, its timers and signals.
//
// A reader that takes nothing is waited for without end, until whoever writes is ending: then for `patience`
// from the last time it took something. Runs on one thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "shared_watch.hpp"

namespace ccbox {

class line_writer {
 public:
  static constexpr std::chrono::milliseconds patience{3000};

  // `fd` is the caller's, and stays open. `ending` is asked now and then while the reader takes nothing.
  line_writer(const boost::asio::any_io_executor& executor, int fd, std::function<bool()> ending);

  void add(std::string_view line);
  // Until everything is written, cannot be, or is given up. Several may wait at a time.
  boost::asio::awaitable<void> flush();
  void give_up();                            // what waits, and whatever comes, is dropped
  bool dropped() const { return dropped_; }  // something was, by give_up()
  int failure() const { return failure_; }   // errno; 0: none

 private:
  bool waits() const { return written_ < waiting_.size() && !given_up_ && failure_ == 0; }
  void write_some();

  const int fd_;
  shared_watch watch_;
  const std::function<bool()> ending_;
  std::string waiting_;
  std::size_t written_ = 0;  // of waiting_
  std::chrono::steady_clock::time_point last_taken_;
  int failure_ = 0;
  bool given_up_ = false, dropped_ = false;
};

}  // namespace ccbox
