// The denials of one session, or the allowed destinations that it did not reach, on their way to the host.
// The first of its kind (host, port, reason) is reported at once; those that follow are counted and reported
// together, once a window. The table is bounded: kinds that find no place are reported together, without a
// host.
//
// {"protocol":"connect","host":"a.test","port":443,"reason":"port","rule":"*.test","origin":"…","count":3}
//
// On one worker's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>

#include "deadline.hpp"

namespace ccbox::egress {

struct denial {
  std::string protocol;  // connect, http, socks5, socks4, sni
  std::string host;      // canonical, or the bytes as sent if they are malformed
  std::uint16_t port = 0;
  std::string reason;
  std::string rule, origin;  // empty: no rule matched
};

class denial_report {
 public:
  static constexpr std::size_t most_kinds = 256;
  static constexpr std::size_t most_host_bytes = 256;

  // `emit` gets one JSON object. Kinds that stay away for `forget_after` windows count as new.
  denial_report(deadline_queue& deadlines, std::chrono::milliseconds window,
                std::function<void(const std::string& json)> emit);
  void add(denial what);
  // Reports what is counted so far.
  void flush();
  bool is_idle() const { return !ticking_; }  // nothing is counted, and every kind is new

 private:
  static constexpr unsigned forget_after = 30;
  using kind = std::tuple<std::string, std::uint16_t, std::string>;
  struct tally {
    denial what;
    std::uint64_t count = 0;
    unsigned quiet_windows = 0;
  };
  void report(tally& t);
  void window_ends();

  const std::chrono::milliseconds window_;
  const std::function<void(const std::string&)> emit_;
  std::map<kind, tally> kinds_;
  tally others_;
  deadline timer_;
  bool ticking_ = false;
};

}  // namespace ccbox::egress
