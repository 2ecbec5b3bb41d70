// A server on a free port of 127.0.0.1 for tests: each connection is handed to a script on a thread of its
// own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/tcp_peer.hpp"

namespace ccbox::test {

class tcp_origin {
 public:
  using script = std::function<void(tcp_peer& client)>;
  explicit tcp_origin(script what);
  // Ends every connection, and waits for the scripts.
  ~tcp_origin();
  std::uint16_t port() const { return port_; }
  std::string authority() const { return "127.0.0.1:" + std::to_string(port_); }
  unsigned connections() const { return connections_; }

 private:
  void accept_all();
  const script script_;
  unique_fd socket_, stop_;
  std::uint16_t port_ = 0;
  std::atomic<unsigned> connections_{0};
  struct conversation {
    tcp_peer peer;
    unique_fd handle;  // to end it from outside, whatever the script does with its own
    std::thread thread;
  };
  std::list<conversation> conversations_;
  std::thread thread_;
};

// An HTTP origin with keep-alive. By the path:
//   /hello          200, Content-Length, "hello"
//   /chunked        200 in chunks with an extension and a trailer, "chunky"
//   /close          200 without framing, "until the end", then FIN
//   /cut            200 that promises more than it sends, then RST
//   /echo           200 with the request's body
//   /garbage        no HTTP at all
//   /smuggled       200 with two lengths
//   /early          413 at once, without reading the body
//   /continue       100, then as /echo
//   /hang           nothing, ever
//   /hangup         FIN without an answer
//   /websocket      101, then what comes is sent back
class http_origin {
 public:
  http_origin();
  std::uint16_t port() const { return origin_.port(); }
  std::string authority() const { return origin_.authority(); }
  unsigned connections() const { return origin_.connections(); }
  std::vector<std::string> heads() const;  // as received, in order

 private:
  void serve(tcp_peer& client);
  bool answer(tcp_peer& client, const std::string& head);
  mutable std::mutex mutex_;
  std::vector<std::string> heads_;
  tcp_origin origin_;
};

}  // namespace ccbox::test
