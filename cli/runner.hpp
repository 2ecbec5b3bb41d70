// One command in one enclosure, from launch to exit code: descriptors or a pty in, signals forwarded,
// everything ended.
//
// Runs on the thread that calls run(), which drives its own io_context: no other thread is needed.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "context.hpp"
#include "option_origins.hpp"
#include "sandbox_spec.hpp"
#include "violation_report.hpp"

namespace ccbox {

struct run_request {
  sandbox_spec spec;
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> env;
  option_origins origins;  // for errors of the launch
  enum class pty_use { automatic, always, never } pty = pty_use::automatic;
  bool json = false;   // events as JSON lines on standard output, the handle first
  bool quiet = false;  // no warnings
  violations_mode violations = violations_mode::summary;
};

// Answers the exit code, having reported what there was to say.
int run_in_enclosure(const sandbox_setup& context, run_request request);

}  // namespace ccbox
