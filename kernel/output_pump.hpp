// Moves what a command writes from a pipe or terminal into a sink, one chunk at a time: it does not read on
// before the sink has taken the last chunk, so a slow sink makes the command wait.
//
// Runs on one strand. It lives until the end of its source, or stop().
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <string>

#include "result.hpp"
#include "unique_fd.hpp"

namespace ccbox {

struct pipe_ends {
  unique_fd reader, writer;
};
result<pipe_ends> make_pipe();  // for what a command writes

class output_pump {
 public:
  using sink = std::function<boost::asio::awaitable<void>(std::string)>;

  // `source` is made non-blocking.
  static result<std::shared_ptr<output_pump>> start(boost::asio::any_io_executor strand, unique_fd source,
                                                    sink to);

  // Resumes once all that was there at the time of the call has been taken, and then the end was reached or
  // `patience_ms` have passed.
  boost::asio::awaitable<void> drained(unsigned patience_ms);

  int descriptor() const;  // -1 once it has ended
  void stop();

 private:
  output_pump() = default;
  struct impl;
  std::shared_ptr<impl> impl_;
};

}  // namespace ccbox
