// The contract suite: what every plugin must keep, ours and theirs. `ccbox plugin test FILE` and
// tests/contract run it.
//
// Each check runs in a child process of its own with a time limit, so a plugin that crashes, hangs or
// corrupts memory is a failed check with a reason, never a failed suite. The file is copied first and loaded
// from the copy, as the loader does. What the suite passes to a plugin ends at an inaccessible page and
// becomes inaccessible after the call: reading beyond a length or keeping a borrowed pointer is a crash here.
//
// It forks without exec, so call it from a process that has no other threads. It does not judge what an
// enclosure withstands: that is the job of tests with a running enclosure.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "result.hpp"

namespace ccbox {

struct contract_check {
  enum class outcome { passed, failed, not_applicable };
  std::string name;     // "unknown_option_is_refused"
  std::string promise;  // the rule that it checks, one line
  outcome state = outcome::passed;
  std::string reason;  // why it failed or does not apply, one line
};

struct contract_options {
  std::vector<std::pair<std::string, std::string>> options;  // as a manifest entry would give them
  unsigned time_factor = 1;  // stretches the ABI's time limits: sanitizers and debug builds are slow
  std::chrono::milliseconds check_limit{60'000};
  std::vector<std::string> only;  // names of the checks to run; empty: all
};

struct contract_report {
  std::string path;
  std::vector<contract_check> checks;  // in the order they ran; none after a create that was refused
  bool passed() const;                 // no check failed
};

// The names and promises of all checks, in order.
std::vector<std::pair<std::string, std::string>> contract_checks();

using contract_sink = std::function<void(const contract_check&)>;

// Calls `sink` after each check. An error means that the suite could not run: the file cannot be read, a fork
// failed. A file that is no plugin fails its first check, and nothing of it is loaded.
result<contract_report> run_plugin_contract(const std::string& path, const contract_options& options,
                                            const contract_sink& sink = {});

}  // namespace ccbox
