// One line of JSON for each decision, in a file of the operator's. Lines are collected and written together,
// at the latest after a quarter of a second; a line is never split between two writes.
//
// {"time":"2026-01-02T03:04:05.678Z","session":"…","protocol":"connect","host":"a.test","port":443,
//  "decision":"allow","rule":"a.test","origin":"…","reason":"","bytes_up":1,"bytes_down":2,"ms":3}
//
// A denial is written when it happens, anything else when it is over. Any thread. What cannot be written (a
// full disk) is dropped and counted: the log never holds up a connection. Half a line that a failed write
// left, of an earlier process too, is ended before the next one.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "counters.hpp"

namespace ccbox::egress {

struct decision_record {
  std::string_view session, protocol, host;
  std::uint16_t port = 0;
  std::string_view outcome;  // allow, deny, or failed: allowed, and not reached for `reason`
  std::string_view reason, rule, origin;
  std::uint64_t bytes_up = 0, bytes_down = 0;
  std::chrono::milliseconds took{0};
};

class decision_log {
 public:
  // Opens or makes the regular file `path`, mode 0600. Empty: nothing is written. Throws
  // ccbox::plugin::failure.
  decision_log(const std::string& path, counters& count);
  ~decision_log();
  decision_log(const decision_log&) = delete;

  explicit operator bool() const { return fd_ >= 0; }
  void add(const decision_record& record);
  // Writes what has been collected. Sessions call it from a timer and when they end.
  void flush();

 private:
  static constexpr std::size_t most_bytes = 256 * 1024;
  void write_out();  // under the lock
  int fd_ = -1;
  counters& counters_;
  std::mutex mutex_;
  std::string lines_;
  bool torn_ = false;  // the file's last line has no end
};

}  // namespace ccbox::egress
