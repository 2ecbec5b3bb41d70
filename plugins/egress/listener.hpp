// Accepts the connections of one listening socket, in batches, while there is room for them. Out of
// descriptors or memory it pauses and goes on: it never gives up. On one worker's thread.
#pragma once

#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <chrono>
#include <functional>
#include <memory>

#include "counters.hpp"
#include "deadline.hpp"
#include "own_listeners.hpp"
#include "stream.hpp"
#include "worker.hpp"

namespace ccbox::egress {

class listener : public std::enable_shared_from_this<listener> {
 public:
  struct callbacks {
    std::function<bool()> has_room;
    std::function<void(stream_socket)> accepted;
  };
  // Owns `fd`, a listening socket, which it makes non-blocking: with it whatever shares it.
  listener(worker& where, int fd, std::chrono::milliseconds pause, counters& count, callbacks then);
  ~listener();
  void start();
  // There is room again.
  void resume();
  void close();

  // Not the worker's thread. A TCP socket on a free port of 127.0.0.1; -1 with errno.
  static int listen_on_loopback();

 private:
  void wait();
  void accept_all();
  worker& worker_;
  asio::posix::basic_stream_descriptor<io_executor> socket_;
  const std::chrono::milliseconds pause_;
  counters& counters_;
  callbacks then_;
  deadline paused_;
  bool is_unix_ = false, waiting_ = false, closed_ = false;
};

}  // namespace ccbox::egress
