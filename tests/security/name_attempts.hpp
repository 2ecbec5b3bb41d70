// The battery: ways to get a name that a rule forbids, or to change what has one. Data;
// name_attempts_test.cpp takes each line to an enclosure with the rules, to one without them, and there again
// with a name that no rule is about.
#pragma once

#include <string>
#include <vector>

namespace ccbox::test {

constexpr int shell_failed = 1000;  // support/attempt/table.hpp

// In `setup`, `action` and `state`, `@` is the name in question and `%` the directory of the attempt.
struct name_attempt {
  std::string what;
  std::string setup;   // for the shell, on the host, when the enclosure runs already
  std::string action;  // support/attempt/script.hpp, or `sh ` and a shell command
  int refused;         // errno
  // Afterwards: `!PATH` does not exist, `PATH=TEXT` is a file of that content, `PATH` exists. All of it holds
  // with the rule, and not all of it without.
  std::string state = "!@";
  std::string name = ".env";
  std::string ordinary = "ok";  // empty: this way is closed whatever the name
};

// By what is attempted.
extern const std::vector<name_attempt> attempts_to_create;
extern const std::vector<name_attempt> attempts_by_openat2;
extern const std::vector<name_attempt> attempts_to_write;
extern const std::vector<name_attempt> attempts_to_rename_or_link;
extern const std::vector<name_attempt> attempts_on_paths;
extern const std::vector<name_attempt> attempts_with_tools;

}  // namespace ccbox::test
