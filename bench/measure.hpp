// Timing of whole commands, peers interleaved so that they share whatever else the machine is doing.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ccbox::bench {

struct sample {
  double wall_ms = 0;
  double cpu_ms = 0;  // user + system of the process and every descendant that was waited for
};

struct contender {
  std::string name;
  std::function<sample()> once;
  std::vector<sample> samples = {};
};

// Runs argv (argv[0] searched in PATH) with stdio on /dev/null; exits with a message if it fails.
sample run_command(const std::vector<std::string>& argv);
// The same; `output` is what it writes to standard output.
sample run_command(const std::vector<std::string>& argv, std::string& output);
// A function in this process; CPU is not measured.
sample time_call(const std::function<void()>& call);

void race(std::vector<contender>& contenders, int rounds);

sample median(const std::vector<sample>& samples);
// One line a contender, with ratios to `baseline` (an index).
void print_table(const std::string& title, const std::vector<contender>& contenders, std::size_t baseline);

double pss_mib(int pid);

}  // namespace ccbox::bench
