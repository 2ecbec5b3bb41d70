// One connection of a client: its requests one after the other, or a WebSocket.
//
// run() on the server's thread; whoever runs it keeps the object. The context outlives it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <chrono>
#include <memory>

#include "access.hpp"
#include "http_server.hpp"
#include "router.hpp"

namespace ccbox::server {

// What the connections of a server share.
struct connection_context {
  const router& routes;
  access_rules access;
  http_limits limits;
  http_counters counters = {};
  bool stopping = false;  // no further request is read
  // A bucket that fills with time and that every request takes from.
  double allowance = static_cast<double>(limits.burst);
  std::chrono::steady_clock::time_point filled = std::chrono::steady_clock::now();
  bool admit();
};

class connection {
 public:
  static std::shared_ptr<connection> make(boost::asio::generic::stream_protocol::socket socket, bool by_tcp,
                                          connection_context& shared);
  virtual ~connection() = default;
  virtual boost::asio::awaitable<void> run() = 0;
  virtual void close() = 0;          // what waits ends at once
  virtual void close_if_idle() = 0;  // if no request is under way
};

}  // namespace ccbox::server
