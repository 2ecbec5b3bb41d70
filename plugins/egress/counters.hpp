// What all sessions of the plugin did, for operators. They only grow, but for the gauges; any thread.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "egress_policy.hpp"

namespace ccbox::egress {

class counters {
 public:
  using value = std::atomic<std::uint64_t>;
  value accepted{0};       // connections of clients
  value accept_pauses{0};  // no descriptors or memory left
  value requests{0};       // absolute-form requests that were passed on
  value origin_reuses{0};  // ... over a connection that was there
  value allowed{0};        // decisions
  value sni_notes{0};      // tunnels whose TLS names another host or none, and that passed
  value bytes_up{0}, bytes_down{0};
  value log_lines_lost{0};
  value sessions{0}, tunnels{0};  // now

  void denied(denial_reason reason) { ++denied_[static_cast<std::size_t>(reason)]; }
  // `word` is one of dial_failure's fixed texts.
  void dial_failed(std::string_view word);
  void looked_up(std::chrono::milliseconds took);

  // Name and labels as Prometheus writes them, and the value.
  void read(
      const std::function<void(std::string_view name, std::string_view labels, double value)>& each) const;

 private:
  static constexpr std::size_t reasons = static_cast<std::size_t>(denial_reason::self) + 1;
  static constexpr std::array<unsigned, 6> bounds_ms = {1, 10, 50, 200, 1000, 5000};
  static constexpr std::array<std::string_view, 11> words = {
      "dns-no-such-name", "dns-failure",         "dns-timeout",     "connection-refused",
      "host-unreachable", "network-unreachable", "connect-timeout", "upstream-failed",
      "upstream-refused", "no-resources",        "connect-failed"};
  std::array<value, reasons> denied_{};
  std::array<value, words.size()> dial_failures_{};
  std::array<value, bounds_ms.size() + 1> lookups_{};
  value lookups_ms_{0};
};

}  // namespace ccbox::egress
