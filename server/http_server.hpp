// HTTP/1.1 and WebSocket on listening sockets that are handed in: parsing, access, limits and time-outs. What
// is asked for is the router's to answer.
//
// One connection that is slow, silent or malformed costs its own descriptor and some kilobytes, for a bounded
// time. Everything runs on the thread of `executor`, which is one; it must outlive the coroutines.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstdint>
#include <memory>

#include "access.hpp"
#include "router.hpp"
#include "unique_fd.hpp"

namespace ccbox::server {

struct http_limits {
  std::size_t connections = 512;
  std::size_t header_bytes = 16 << 10;
  std::size_t body_bytes = 2 << 20;     // a spec of 1 MiB inside a request for its wrapping
  std::size_t message_bytes = 1 << 20;  // of a WebSocket
  std::uint64_t requests_per_second = 2000, burst = 4000;
  std::chrono::milliseconds request_time{10'000};  // for a request to be there
  std::chrono::milliseconds idle_time{60'000};     // between requests
  std::chrono::milliseconds write_time{30'000};    // for the peer to take what it is sent
};

struct http_counters {
  std::uint64_t accepted = 0, refused = 0, requests = 0, failed_requests = 0;
};

class http_server {
 public:
  http_server(boost::asio::any_io_executor executor, const router& routes, access_rules rules,
              http_limits limits = {});
  ~http_server();
  http_server(const http_server&) = delete;
  http_server& operator=(const http_server&) = delete;

  // Takes a listening stream socket of family AF_UNIX, AF_INET or AF_INET6. Who connects by AF_UNIX must be
  // this user or root, by the kernel's word.
  result<void> serve(unique_fd listening);

  void stop_accepting();  // and answers what is under way
  void close_all();       // at once
  std::size_t open_connections() const;
  const http_counters& counters() const;

 private:
  struct impl;
  std::shared_ptr<impl> impl_;
};

}  // namespace ccbox::server
