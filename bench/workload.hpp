// What bench_broker measures: pieces of work in a directory that is writable inside.
#pragma once

#include <string>
#include <vector>

namespace ccbox::bench {

struct workload {
  std::string name;                    // as --only takes it
  std::string title;                   // as the table shows it
  double target;                       // the most times bare bwrap's time; 0: none is set
  long operations;                     // what the time is divided by for the table; 1: it is shown as a whole
  std::vector<std::string> arguments;  // of within.cpp
  std::vector<std::string> comes_to_be;  // directories to be removed, from outside, before each run
  bool prepared;  // something is done before the clock starts: the processor time of the whole run says
                  // nothing
};

const std::vector<workload>& workloads();

// Puts what the workloads need into `directory`: a repository of 3,500 files with two branches and a bare one
// with loose objects, an archive of 10,000 files, a C project, packages of npm. `within`: the executable.
// Exits with a message if that fails.
void furnish(const std::string& directory, const std::string& within);

}  // namespace ccbox::bench
