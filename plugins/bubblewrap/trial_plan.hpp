// The plans of trials, made by the very code that plans launches, with what they refer to held open.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "descriptor.hpp"

namespace ccbox::bubblewrap {

struct trial_plan {
  std::vector<std::string> argv;
  std::vector<descriptor> descriptors;  // for the numbers from 3 on; all of them above every such number
  bool identity = false;
  descriptor denials;  // our end of the socket on which the broker tells of refusals; or not open

  // ours → the started process's number, ascending by the latter; the first is its standard input and output,
  // too.
  std::vector<std::pair<int, int>> moves() const;
};

trial_plan plan_enclosure_trial(const host_facilities& host);

constexpr std::string_view ordinary_name = "ordinary", forbidden_name = "name.forbidden",
                           forbidden_glob = "*.forbidden";
// `scratch`: a directory of the host, to be writable inside.
trial_plan plan_name_trial(const host_facilities& host, std::string_view init_path,
                           const std::string& scratch);

// A copy of `fd`, which is closed, above every number that a started process is given: no dup2 there hits a
// source. Throws plugin::failure for a descriptor that is not open, by errno.
descriptor lifted(int fd, const std::string& what);
[[noreturn]] void fail_trial(const std::string& what);  // by errno

}  // namespace ccbox::bubblewrap
