// How to start an enclosure, as a backend answered it: text and bytes only, so that a backend is tested by
// comparing.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "rule_bits.hpp"

namespace ccbox {

struct plan_file {
  int number;         // the descriptor number under which the started process finds it
  std::string label;  // "bwrap-args"
  std::string bytes;  // goes into a sealed memfd
};

struct plan_path {
  int number;
  std::string host_path;  // opened O_PATH, RESOLVE_NO_SYMLINKS, when the plan is started
};

struct plan {
  // Numbers every started process finds: the control channel and ccbox-init's executable; files follow from 5
  // on.
  static constexpr int channel_fd = 3;
  static constexpr int init_fd = 4;
  static constexpr int first_file_fd = 5;

  std::string plugin;                                    // the backend's name
  std::string kind;                                      // native, microvm, none
  std::vector<std::string> argv;                         // argv[0] absolute
  std::vector<std::pair<std::string, std::string>> env;  // the launcher's whole environment
  std::vector<plan_file> files;
  std::vector<plan_path> paths;  // files and paths share one sequence of numbers
  int denials =
      0;  // the number of the socket on which the started process tells of denials; 0: there is none
  rule_bits enforced = 0;
  std::vector<std::string> layers;  // one a policy rule; empty: nobody enforces it
  bool identity_userns = false;
  bool unconfined = false;
};

// Does ccbox-init lay a floor (ccbox/floor.hpp), over which a broker acts for the commands?
bool has_floor(const plan& p);

boost::json::value to_json(const plan& p);

}  // namespace ccbox
