// Attempts of support/attempt/table.hpp in `ccbox run`, each in a directory that is prepared on the host when
// the enclosure runs already: what was found at its start is protected by mounts besides.
#pragma once

#include <string>
#include <vector>

#include "support/temporary_directory.hpp"

namespace ccbox::test {

inline const std::string attempt_program = CCBOX_TEST_BINARY_DIR "/bin/attempt";

// `ccbox run` in `directory` with these words, what makes the attempt program visible inside, and the
// command.
std::vector<std::string> run_attempts(const std::string& directory, const std::vector<std::string>& options,
                                      const std::vector<std::string>& command);
// `go`, for which attempts wait until they are prepared.
void make_gate(const temporary_directory& in);
void open_gate(const temporary_directory& in);
inline const std::vector<std::string> without_names{"--without", "fs_name_deny"};

// In the row's own texts `%` stands for its directory.
struct table_row {
  std::string setup;   // for the host's shell, in the row's directory
  std::string action;  // support/attempt/table.hpp
};
struct row_result {
  int error = -1;  // -1: it was never said
  std::string observed;
};

class enclosed_table {
 public:
  // Runs them all. What goes wrong with the enclosure as a whole is a std::runtime_error.
  enclosed_table(const std::vector<table_row>& rows, const std::vector<std::string>& options);

  const row_result& operator[](std::size_t row) const { return results_.at(row); }
  std::string directory(std::size_t row) const { return work_ / std::to_string(row); }
  // `!PATH`, `PATH=TEXT` and `PATH`, relative to the row's directory: all of it holds there.
  bool holds(std::size_t row, const std::string& state) const;

 private:
  void prepare(const std::vector<table_row>& rows) const;

  temporary_directory work_;
  std::vector<row_result> results_;
};

}  // namespace ccbox::test
