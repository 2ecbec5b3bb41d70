// The monitor of one session: what was refused, without noise and storms, and what its commands complain
// about where nobody else reports it.
//
// Of a backend that reports refused actions itself, the lines of commands tell one thing more: that a secret
// was to be read. Reading is not trapped, so the complaint is the only sign of it. Such a line counts if the
// path in it is one that the policy masks, and nothing else does.
#pragma once

#include <map>
#include <string_view>

#include "ccbox/plugin.hpp"
#include "line_reader.hpp"
#include "masked_paths.hpp"
#include "noise_filter.hpp"
#include "refused_line.hpp"
#include "tally.hpp"

namespace ccbox::violations {

class session_watch : public plugin::watch {
 public:
  static constexpr std::size_t most_lines = 100;      // read of one piece of output; the rest is counted
  static constexpr std::size_t most_commands = 1000;  // whose output is read at a time

  // Borrows the filter.
  session_watch(const noise_filter& noise, const plugin::monitor_request& request);

  void denial(const plugin::violation& denied, plugin::monitor_sink& sink) override;
  void output(std::uint64_t exec_id, std::string_view bytes, plugin::monitor_sink& sink) override;
  std::uint32_t flush(bool last, plugin::monitor_sink& sink) override;

 private:
  void read(std::uint64_t exec_id, std::string_view line, plugin::monitor_sink& sink);

  const noise_filter& noise_;
  const masked_paths masked_;
  const bool denials_reported_;
  std::map<std::uint64_t, line_reader> readers_;
  tally tally_;
};

}  // namespace ccbox::violations
