// Names, paths, descriptors and directories that change while a call is about them: support/attempt/race.hpp.
// Each race runs with the rules, where nothing may come of it, and without, where something must: else it
// proves nothing.
#include <doctest/doctest.h>

#include <sstream>
#include <string>

#include "support/enclosed_table.hpp"
#include "support/run_command.hpp"
#include "support/sanitizer.hpp"

using namespace ccbox::test;

namespace {

// A sanitizer makes the broker two to four times slower.
constexpr milliseconds race_limit{sanitized ? 600000 : 120000};

struct counted {
  unsigned long escapes = 0, done = 0, refused = 0, other = 0;
};

counted race(const std::string& name, const std::vector<std::string>& options, bool with_protected_file) {
  const temporary_directory work;
  make_gate(work);
  run_options how;
  how.limit = race_limit;
  auto enclosure =
      running::start(run_attempts(work.path(), options, {attempt_program, "race", name, "10000"}), how);
  REQUIRE(enclosure.wait_for("ready\n"));
  if (with_protected_file) work.write(".env", "old");
  open_gate(work);
  const auto end = enclosure.wait();
  INFO(end.err);
  REQUIRE(end.code == 0);
  counted all;
  std::istringstream in(end.out.substr(end.out.find("escapes")));
  std::string word;
  in >> word >> all.escapes >> word >> all.done >> word >> all.refused >> word >> all.other;
  REQUIRE(in);
  if (with_protected_file && options.empty()) CHECK(read_file(work / ".env") == "old");
  return all;
}

void prove(const std::string& name, bool with_protected_file = false) {
  CAPTURE(name);
  const auto with = race(name, {}, with_protected_file);
  MESSAGE(name << ": " << with.done << " done, " << with.refused << " refused, " << with.other << " other");
  CHECK(with.escapes == 0);
  CHECK(with.done > 0);
  CHECK(with.refused > 0);
  CHECK(with.other == 0);
  const auto without = race(name, without_names, with_protected_file);
  MESSAGE(name << " without rules: " << without.escapes << " escapes");
  CHECK(without.escapes > 0);
}

}  // namespace

TEST_CASE("a path that changes while it is read") {
  for (const auto* name : {"buffer-open", "buffer-mkdir", "buffer-rename", "buffer-link", "vfork-child"})
    prove(name);
}

TEST_CASE("symbolic links that change places under a call") {
  for (const auto* name : {"symlink-swap", "directory-swap"})
    prove(name);
}

TEST_CASE("directories that move under a call") {
  for (const auto* name :
       {"rename-storm", "held-storm", "unnamed-storm", "held-rename-storm", "type-swap", "inode-reuse"})
    prove(name);
}

TEST_CASE("descriptors and working directories that change under a call") {
  for (const auto* name : {"dup2-directory", "chdir-flip"})
    prove(name);
  for (const auto* name : {"dup2-reopen", "dup2-link"})
    prove(name, true);
}

TEST_CASE("signals change nothing about how a call ends") {
  prove("signal-storm");
}
