// One violation for a storm of them: the first of its kind (action and target) is told at once, those that
// follow are counted, and told together with the next flush(). A kind that stayed away for half a minute is a
// new one. Bounded: kinds that find no place are counted together, as action `*` on target `*`.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "ccbox/plugin.hpp"

namespace ccbox::violations {

class tally {
 public:
  using clock = std::chrono::steady_clock;
  static constexpr std::size_t most_kinds = 256;
  static constexpr std::size_t most_raw_bytes = 8192;  // of one that is kept
  static constexpr std::chrono::seconds forgotten_after{30};

  void add(const plugin::violation& what, clock::time_point now, plugin::monitor_sink& sink);
  void add_unread(std::uint64_t count) { others_ += count; }
  void flush(clock::time_point now, plugin::monitor_sink& sink);

 private:
  struct kind {
    std::uint64_t exec_id = 0, count = 0;
    std::string capability, raw;
    clock::time_point told;
  };
  bool make_room(clock::time_point now);

  std::map<std::pair<std::string, std::string>, kind> kinds_;
  std::uint64_t others_ = 0;
};

}  // namespace ccbox::violations
