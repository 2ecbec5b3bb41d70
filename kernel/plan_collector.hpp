// The caller's side of ccbox_plan_sink: takes what a plugin says of its plan, checks every piece, keeps the
// first thing that is wrong with it.
//
// Never throws into the plugin and never trusts its pointers' lengths further than the limits below. One
// collector serves one call of `plan`, on one thread.
#pragma once

#include <optional>
#include <string>

#include "ccbox/plugin.h"
#include "plan.hpp"
#include "result.hpp"

namespace ccbox {

class plan_collector {
 public:
  static constexpr std::size_t max_bytes = 32 << 20;      // of all texts and files together
  static constexpr std::size_t max_descriptors = 16'384;  // files and paths
  static constexpr std::size_t max_entries = 200'000;     // arguments, variables and layers
  static constexpr std::size_t max_argument_bytes =
      128 * 1024 - 1;  // what Linux takes for one string of argv or env

  explicit plan_collector(std::size_t rule_count);
  plan_collector(const plan_collector&) = delete;
  plan_collector& operator=(const plan_collector&) = delete;

  const ccbox_plan_sink* sink() const { return &sink_; }  // valid as long as the collector

  // The checked plan (plugin and kind are the caller's to fill in), or what is wrong with it.
  result<plan> take();

 private:
  template <class Body>
  void guarded(Body&& body) noexcept;
  std::string take_text(ccbox_str text, const char* what);
  std::int32_t next_number();

  ccbox_plan_sink sink_{};
  plan plan_;
  std::optional<error> failure_;
  std::size_t bytes_ = 0;
  std::size_t entries_ = 0;
  bool enforces_called_ = false;
};

}  // namespace ccbox
