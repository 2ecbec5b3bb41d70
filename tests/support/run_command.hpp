// Runs a program as a test's subject: argv, input, environment and directory in, exit code and outputs out.
//
// Every wait has a limit; a program that outlives it is killed with its process group, and the test sees
// `timed_out`. One thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "unique_fd.hpp"

namespace ccbox::test {

using milliseconds = std::chrono::milliseconds;
constexpr milliseconds default_limit{30000};

struct run_options {
  std::string input;                            // standard input; then its end
  std::optional<std::vector<std::string>> env;  // NAME=VALUE; absent: the test's own
  std::vector<std::string> extra_env;           // on top
  std::string cwd;                              // empty: the test's own
  std::vector<std::pair<int, int>> inherit;     // further descriptors: ours → the program's number
  std::vector<int> closed;                      // of 0, 1, 2: not open at all
  milliseconds limit = default_limit;
};

struct finished {
  int code = -1;  // 128 + n if a signal ended it
  bool signalled = false;
  bool timed_out = false;
  std::string out, err;
};

// A program that goes on while the test looks at it. Destroying it kills its process group.
class running {
 public:
  static running start(const std::vector<std::string>& argv, const run_options& options = {});
  running(running&&) noexcept;
  running& operator=(running&&) = delete;
  ~running();

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  // Reads until `text` is in what the program has printed (out or err) or the limit runs out.
  bool wait_for(const std::string& text, milliseconds limit = default_limit);
  finished wait();  // to the end, within the options' limit
  const std::string& out() const { return result_.out; }
  void close_output();  // the reader of its standard output goes away

 private:
  running() = default;
  bool pump(std::chrono::steady_clock::time_point until, const std::string* text);

  pid_t pid_ = -1;
  unique_fd pidfd_, in_, out_, err_;
  std::string input_;
  milliseconds limit_{};
  finished result_;
};

finished run(const std::vector<std::string>& argv, const run_options& options = {});

// A program on a terminal of the test's: the test types and sees what a person would.
class on_terminal {
 public:
  struct where {
    bool in = true, out = true,
         err = true;  // which of its descriptors are the terminal; the others are /dev/null
    int out_fd = -1;  // instead, for out
  };
  static on_terminal start(const std::vector<std::string>& argv, unsigned rows, unsigned cols);
  static on_terminal start(const std::vector<std::string>& argv, unsigned rows, unsigned cols, where which);
  on_terminal(on_terminal&&) noexcept;
  on_terminal& operator=(on_terminal&&) = delete;
  ~on_terminal();

  pid_t pid() const { return pid_; }
  void type(const std::string& keys) const;
  void resize(unsigned rows, unsigned cols) const;
  void signal(int number) const;
  bool wait_for(const std::string& text,
                milliseconds limit = default_limit);  // from where the last one ended
  int wait(milliseconds limit = default_limit);       // exit code; -1: it did not end
  bool wait_until_stopped(milliseconds limit = default_limit);
  const std::string& screen() const { return screen_; }
  bool in_raw_mode() const;

 private:
  on_terminal() = default;
  bool read_some(std::chrono::steady_clock::time_point until);

  pid_t pid_ = -1;
  unique_fd pidfd_, master_, slave_;
  std::string screen_;
  std::size_t seen_ = 0;
};

// The built programs and files.
std::string ccbox_program();

// Polls a condition that nothing announces (a file, a /proc entry) until it holds.
template <class Condition>
bool eventually(Condition holds, milliseconds limit = default_limit);

bool poll_pause();  // what eventually() does between two looks

template <class Condition>
bool eventually(Condition holds, milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > until) return false;
    poll_pause();
  }
  return true;
}

std::string read_file(const std::string& path);  // empty if it cannot be read
bool exists(const std::string& path);

// Processes of this host whose command line has `marker` in it, but for this one.
std::vector<pid_t> processes_with(const std::string& marker);

}  // namespace ccbox::test
