// Connects to one of several addresses of one host, "happy eyeballs" (RFC 8305): the families take turns, the
// next address is tried a little later or as soon as one has failed, the first connection wins and the others
// are closed. Only the addresses it is given are dialled.
//
// On one worker's thread. A race lives until it is over or cancelled, whoever holds it.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "address.hpp"
#include "deadline.hpp"
#include "dial_outcome.hpp"
#include "eventual.hpp"
#include "worker.hpp"

namespace ccbox::egress {

class connect_race : public std::enable_shared_from_this<connect_race> {
 public:
  static constexpr std::size_t most_addresses = 16;
  struct limits {
    std::chrono::milliseconds attempt_delay{250}, total{10'000};
  };

  // Begins a connection: a non-blocking socket that is writable once it is made, or -1 with errno.
  using beginning = std::function<int(const ip_address&, std::uint16_t port)>;

  connect_race(worker& where, std::vector<ip_address> addresses, std::uint16_t port, limits l,
               beginning begin = begin_tcp);
  static int begin_tcp(const ip_address& address, std::uint16_t port);
  // `result` is set once, with `cancelled` after cancel().
  void start(eventual<dial_outcome> result);
  void cancel();

 private:
  void try_next();
  void connected(std::size_t attempt, boost::system::error_code stopped);
  void attempt_failed(int code);
  void finish(dial_outcome outcome);

  worker& worker_;
  std::vector<ip_address> addresses_;
  const std::uint16_t port_;
  const limits limits_;
  const beginning begin_;
  std::optional<eventual<dial_outcome>> result_;
  std::deque<stream_socket> attempts_;
  std::size_t tried_ = 0, open_ = 0;
  dial_failure::kind worst_ = dial_failure::kind::failed;
  bool any_failed_ = false;
  deadline stagger_, total_;
};

}  // namespace ccbox::egress
