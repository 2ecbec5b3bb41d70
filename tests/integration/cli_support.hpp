// What the tests of the command line share: a directory of their own and `ccbox run` in it.
#pragma once

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
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

inline const arguments run_words{ccbox_program(), "run", "--quiet"};

inline run_options in(const temporary_directory& directory) {
  run_options options;
  options.cwd = directory.path();
  return options;
}

// `ccbox run … -- command` in the directory.
inline finished enclosed(const temporary_directory& directory, const arguments& command) {
  return run(run_words + arguments{"--"} + command, in(directory));
}

// A policy file that demands exec_deny too, which nobody enforces on Linux.
inline void write_demanding_policy(const temporary_directory& directory, const std::string& name) {
  std::ifstream shipped(CCBOX_TEST_SOURCE_DIR "/config/policy.yaml");
  std::string text(std::istreambuf_iterator<char>(shipped), {});
  const std::string last = "pid_isolation]";
  const auto at = text.find(last);
  REQUIRE(at != text.npos);
  text.replace(at, last.size(), "pid_isolation, exec_deny]");
  directory.write(name, text);
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace ccbox::test
