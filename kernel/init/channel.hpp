// init's end of the stream to the kernel side: whole frames in, whole frames out, never blocking.
//
// A frame is read in two steps, its header and then its payload, so descriptors that arrive with the header
// are its own. What does not fit into the socket waits in a queue; as long as the queue is long the
// supervisor takes no further requests, so a kernel side that stops reading cannot make it grow without end.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../unique_fd.hpp"
#include "protocol.hpp"

struct msghdr;

namespace ccbox::init {

struct frame {
  frame_header header{};
  std::string payload;
  std::vector<unique_fd> descriptors;
  bool descriptors_lost = false;  // our descriptor table was full: fewer than header.descriptors arrived
};

class channel {
 public:
  enum class input { nothing, complete, ended, malformed };

  // Takes over `fd`, which must be a connected Unix stream socket; otherwise ends the process (failure.hpp).
  explicit channel(int fd);

  int descriptor() const { return socket_.get(); }
  // `complete`: `into` holds the next frame. `nothing`: none is complete yet.
  input receive(frame& into);

  // At most max_descriptors; they are closed once they are sent.
  void send(frame_type type, std::uint64_t id, std::string_view payload,
            std::vector<unique_fd> descriptors = {});
  // Writes what the socket takes. False: the other end is gone.
  bool flush();
  bool pending() const { return !queue_.empty(); }
  bool stalled() const { return stalled_; }  // pending, and it takes a moment rather than POLLOUT
  bool congested() const;

 private:
  struct outgoing {
    std::string bytes;
    std::vector<unique_fd> descriptors;
  };

  input read_header();
  input read_payload();
  bool take_descriptors(msghdr& message, bool expected);

  unique_fd socket_;
  frame incoming_;
  std::string header_;
  std::size_t received_ = 0;  // bytes of the payload
  bool in_payload_ = false;
  std::vector<outgoing> queue_;
  std::size_t sent_ = 0;  // bytes of queue_.front()
  bool stalled_ = false;
};

}  // namespace ccbox::init
