// Bytes both ways between a client and an origin until both have ended.
//
// Each direction ends by itself: a FIN becomes a FIN on the other side. After the first one the tunnel lasts
// as long as data flows, and half_closed without. A broken side resets the other, so that nobody takes a part
// for the whole. Bulk data goes through a pipe (splice) that is lent while it flows; an idle tunnel holds two
// sockets and this object. What the client sends and the SNI check has not passed is held back; what the
// origin sends is not.
//
// Shared: alive until it is over; `ended` is called once, then. On one worker's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "deadline.hpp"
#include "pipe_pool.hpp"
#include "sni_check.hpp"
#include "stream.hpp"
#include "worker.hpp"

namespace ccbox::egress {

struct tunnel_limits {
  std::chrono::milliseconds idle, half_closed, life;
};

struct tunnel_end {
  std::uint64_t bytes_up = 0, bytes_down = 0;
  std::chrono::milliseconds took{0};
  bool refused = false;  // by the SNI check: no hello that it refused was forwarded
};

class tunnel : public std::enable_shared_from_this<tunnel> {
 public:
  struct side {
    stream_socket socket;
    std::string early;  // read from it already, to be forwarded first
  };
  struct callbacks {
    std::function<void(const sni_check&)> sni_noted;  // the check has something to say
    std::function<void(const tunnel_end&)> ended;
  };

  tunnel(worker& where, side client, side origin, tunnel_limits limits, std::optional<sni_check> check,
         callbacks then);
  ~tunnel();
  void start();
  // Ends it now; both sides are closed when it returns.
  void abort();

 private:
  enum class progress { again, wait_read, wait_write, finished, broken };
  struct direction {
    stream_socket* from = nullptr;
    stream_socket* to = nullptr;
    std::string pending;  // read, and not taken yet
    std::size_t pending_sent = 0;
    pipe_pool::pipe pipe;
    std::size_t in_pipe = 0;
    bool bulk = false, from_ended = false, over = false;
    std::uint64_t bytes = 0;
  };
  void pump(direction& d);
  void wait(direction& d, stream_socket& socket, asio::socket_base::wait_type what);
  progress step(direction& d);
  progress gather(direction& d);  // for the SNI check
  progress send_pending(direction& d);
  progress empty_pipe(direction& d);
  progress copy(direction& d);
  progress fill_pipe(direction& d);
  void look_at_the_clock();
  void finish(bool in_order);

  worker& worker_;
  stream_socket client_, origin_;
  direction up_, down_;
  const tunnel_limits limits_;
  std::optional<sni_check> check_;
  std::string held_;  // of the client, not passed by the check
  callbacks then_;
  deadline limit_;
  std::chrono::steady_clock::time_point started_, active_;
  bool over_ = false, refused_ = false;
};

}  // namespace ccbox::egress
