// Connections to origins that wait for the next absolute-form request of the session to the same host and
// port. One that says anything by itself, or ends, is not used again. On one worker's thread.
#pragma once

#include <chrono>
#include <list>
#include <optional>

#include "deadline.hpp"
#include "destination.hpp"
#include "stream.hpp"

namespace ccbox::egress {

class origin_pool {
 public:
  origin_pool(deadline_queue& deadlines, std::size_t most, std::chrono::milliseconds keep);
  // The policy must have allowed `to` for the request at hand.
  std::optional<stream_socket> take(const destination& to);
  void put(const destination& to, stream_socket idle);
  void clear();

 private:
  struct entry {
    destination to;
    stream_socket socket;
    std::chrono::steady_clock::time_point until;
  };
  void drop_old();
  const std::size_t most_;
  const std::chrono::milliseconds keep_;
  std::list<entry> idle_;  // the latest first
  deadline oldest_;
};

}  // namespace ccbox::egress
