#include "support/enclosed_table.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "support/run_command.hpp"
#include "unique_fd.hpp"

namespace ccbox::test {
namespace {

namespace fs = std::filesystem;
constexpr milliseconds table_limit{240000};

std::string with_directory(std::string text, const std::string& directory) {
  for (std::size_t at = 0; (at = text.find('%', at)) != std::string::npos; at += directory.size())
    text.replace(at, 1, directory);
  return text;
}

}  // namespace

void make_gate(const temporary_directory& in) {
  if (::mkfifo((in / "go").c_str(), 0600) != 0) throw std::runtime_error("mkfifo");
}

void open_gate(const temporary_directory& in) {
  const bool opened = eventually(
      [&] { return unique_fd(::open((in / "go").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)).get() >= 0; });
  if (!opened) throw std::runtime_error("nobody waits for the attempts to be prepared");
}

std::vector<std::string> run_attempts(const std::string& directory, const std::vector<std::string>& options,
                                      const std::vector<std::string>& command) {
  std::vector<std::string> words{
      ccbox_program(), "run",     "--quiet",   "--ro",   CCBOX_TEST_BINARY_DIR "/bin",
      "--bind",        directory, "--workdir", directory};
  words.insert(words.end(), options.begin(), options.end());
  words.push_back("--");
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

enclosed_table::enclosed_table(const std::vector<table_row>& rows, const std::vector<std::string>& options)
    : results_(rows.size()) {
  make_gate(work_);
  run_options how;
  how.cwd = work_.path();
  how.limit = table_limit;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    fs::create_directory(directory(row));
    for (const auto& word : {directory(row), with_directory(rows[row].action, directory(row))})
      how.input.append(word).push_back('\0');
  }
  auto enclosure = running::start(run_attempts(work_.path(), options, {attempt_program, "table"}), how);
  if (!enclosure.wait_for("ready\n")) throw std::runtime_error("no attempts: " + enclosure.wait().err);
  prepare(rows);
  open_gate(work_);
  const auto end = enclosure.wait();
  if (end.code != 0)
    throw std::runtime_error("the attempts ended with " + std::to_string(end.code) + ": " + end.err);
  std::istringstream lines(end.out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::size_t row = 0;
    int error = 0;
    if (!(words >> row >> error)) continue;  // "ready"
    words.get();
    results_.at(row).error = error;
    std::getline(words, results_.at(row).observed);
  }
}

void enclosed_table::prepare(const std::vector<table_row>& rows) const {
  run_options how;
  how.extra_env = {"GIT_AUTHOR_NAME=a",       "GIT_AUTHOR_EMAIL=a@b",  "GIT_COMMITTER_NAME=a",
                   "GIT_COMMITTER_EMAIL=a@b", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + work_.path()};
  how.limit = table_limit;
  for (std::size_t row = 0; row < rows.size(); ++row)
    if (!rows[row].setup.empty())
      how.input += "( cd '" + directory(row) + "'\n" + with_directory(rows[row].setup, directory(row)) +
                   "\n) </dev/null || { echo setup of " + std::to_string(row) + " >&2; exit 1; }\n";
  const auto end = run({"/bin/sh", "-s"}, how);
  if (end.code != 0) throw std::runtime_error("cannot prepare: " + end.err);
}

bool enclosed_table::holds(std::size_t row, const std::string& state) const {
  // Parted by spaces: names with one are none of ours.
  std::istringstream in(state);
  for (std::string fact; std::getline(in, fact, ' ');) {
    const bool absent = fact[0] == '!';
    const auto equals = absent ? std::string::npos : fact.find('=');
    const auto path = directory(row) + "/" + fact.substr(absent ? 1 : 0, equals);
    struct stat status;
    const bool there = ::lstat(path.c_str(), &status) == 0;
    if (there == absent) return false;
    if (equals != std::string::npos && read_file(path) != fact.substr(equals + 1)) return false;
  }
  return true;
}

}  // namespace ccbox::test
