// What the tests of the command line share: a directory of their own and `ccbox run` in it.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "support/run_command.hpp"
#include "support/temporary_directory.hpp"

namespace ccbox::test {

using arguments = std::vector<std::string>;

inline arguments operator+(arguments left, const arguments& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

// Until name rules are enforced on Linux, the standard policy is refused without this.
inline const arguments run_words{ccbox_program(), "run", "--without", "fs_name_deny", "--quiet"};

inline run_options in(const temporary_directory& directory) {
  run_options options;
  options.cwd = directory.path();
  return options;
}

// `ccbox run … -- command` in the directory.
inline finished enclosed(const temporary_directory& directory, const arguments& command) {
  return run(run_words + arguments{"--"} + command, in(directory));
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace ccbox::test
