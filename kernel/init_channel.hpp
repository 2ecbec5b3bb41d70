// The kernel's side of init/protocol.hpp over asio: whole frames with their descriptors, in order.
//
// What comes from init is outside input: a frame that is malformed, oversized, of a type init does not send,
// or whose descriptors do not match what it says is an error, and every descriptor that came along is closed.
//
// Runs on one strand; close() may be called at any time there.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "init/protocol.hpp"
#include "result.hpp"
#include "unique_fd.hpp"

namespace ccbox {

class init_channel {
 public:
  struct frame {
    init::frame_type type;
    std::uint64_t id;
    std::string payload;
    std::vector<unique_fd> descriptors;
  };

  // `socket`: our end of a stream socket pair.
  init_channel(boost::asio::any_io_executor strand, unique_fd socket);
  ~init_channel();

  // Sends now, or as soon as there is room, and then closes the descriptors. Never waits. too_large: more
  // than a frame takes, nothing was sent; unavailable: the stream has ended.
  result<void> send(init::frame_type type, std::uint64_t id, std::string payload,
                    std::vector<unique_fd> descriptors = {});

  // The next frame. unavailable: the stream ended; failed: it is not the protocol.
  boost::asio::awaitable<result<frame>> receive();
  // The same if it can be had without waiting.
  std::optional<result<frame>> try_receive();

  // Ends the stream, for copies of the socket too. receive() answers unavailable from now on.
  void close();

 private:
  struct impl;
  std::shared_ptr<impl> impl_;
};

}  // namespace ccbox
