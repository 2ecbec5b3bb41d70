#include "counters.hpp"

#include <algorithm>

namespace ccbox::egress {

void counters::dial_failed(std::string_view word) {
  const auto* at = std::find(words.begin(), words.end(), word);
  if (at != words.end()) ++dial_failures_[static_cast<std::size_t>(at - words.begin())];
}

void counters::looked_up(std::chrono::milliseconds took) {
  std::size_t bucket = 0;
  while (bucket < bounds_ms.size() && took.count() > bounds_ms[bucket])
    ++bucket;
  ++lookups_[bucket];
  lookups_ms_ += static_cast<std::uint64_t>(took.count());
}

void counters::read(
    const std::function<void(std::string_view name, std::string_view labels, double value)>& each) const {
  const auto one = [&](std::string_view name, const value& v, const std::string& labels = {}) {
    each("ccbox_egress_" + std::string(name), labels, static_cast<double>(v.load()));
  };
  one("connections_total", accepted);
  one("accept_pauses_total", accept_pauses);
  one("requests_total", requests);
  one("origin_reuses_total", origin_reuses);
  one("allowed_total", allowed);
  for (std::size_t i = 0; i < reasons; ++i)
    one("denied_total", denied_[i],
        "reason=\"" + std::string(to_string(static_cast<denial_reason>(i))) + "\"");
  one("sni_notes_total", sni_notes);
  for (std::size_t i = 0; i < words.size(); ++i)
    one("dial_failures_total", dial_failures_[i], "reason=\"" + std::string(words[i]) + "\"");
  one("bytes_total", bytes_up, "direction=\"up\"");
  one("bytes_total", bytes_down, "direction=\"down\"");
  one("log_lines_lost_total", log_lines_lost);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < lookups_.size(); ++i) {
    sum += lookups_[i];
    const auto bound = i < bounds_ms.size() ? std::to_string(bounds_ms[i]) : std::string("+Inf");
    each("ccbox_egress_lookup_ms_bucket", "le=\"" + bound + "\"", static_cast<double>(sum));
  }
  each("ccbox_egress_lookup_ms_count", "", static_cast<double>(sum));
  one("lookup_ms_sum", lookups_ms_);
  one("sessions", sessions);
  one("tunnels", tunnels);
}

}  // namespace ccbox::egress
