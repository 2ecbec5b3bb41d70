// More existing files with protected names than can be mounted: the name rules keep them.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/run_command.hpp"
#include "support/temporary_directory.hpp"

using namespace ccbox::test;

namespace {

constexpr int how_many = 3000;

std::string place(int i) {
  return std::to_string(i % 100) + "/" + std::to_string(i) + "/a/b/c";
}

// Everything that could change the file or give its place to another, on every 250th of them, and what may be
// done beside it.
const std::string attempts = R"sh(
for i in $(seq 0 250 2999); do
  d=$((i % 100))/$i/a/b/c
  { echo changed > $d/.env; echo more >> $d/.env; truncate -s 0 $d/.env; dd if=/dev/null of=$d/.env
    mv $d/.env $d/other; mv -T $d/fine $d/.env; ln -f $d/fine $d/.env; ln $d/.env $d/linked; rm -f $d/.env
    rm -rf $((i % 100))/$i; cp --remove-destination $d/fine $d/.env
  } 2>/dev/null
  mv $((i % 100))/$i $((i % 100))/$i-moved && echo again > $((i % 100))/$i-moved/a/b/c/.env
  mv $((i % 100))/$i-moved $((i % 100))/$i
done 2>/dev/null
true
)sh";

void fill(const temporary_directory& work) {
  for (int i = 0; i < how_many; ++i) {
    work.write(place(i) + "/.env", "mine\n");
    work.write(place(i) + "/fine", "fine\n");
  }
}

int left_alone(const temporary_directory& work) {
  int count = 0;
  for (int i = 0; i < how_many; ++i)
    count += read_file(work / (place(i) + "/.env")) == "mine\n";
  return count;
}

}  // namespace

TEST_CASE("thousands of protected files in deep directories stay what they are, and the start goes on") {
  const temporary_directory work;
  fill(work);
  run_options options;
  options.cwd = work.path();
  options.limit = milliseconds(120000);
  const auto enclosed = run({ccbox_program(), "run", "--quiet", "--", "bash", "-c", attempts}, options);
  CHECK(enclosed.code == 0);
  CHECK(enclosed.err == "");
  CHECK(left_alone(work) == how_many);
  CHECK_FALSE(exists(work / (place(0) + "/linked")));
  CHECK_FALSE(exists(work / (place(0) + "/other")));
  const auto told = run({ccbox_program(), "run", "--", "true"}, options);
  CHECK(told.code == 0);
  CHECK(told.err.find("warning: 3000 existing files have protected names") != std::string::npos);
  const auto bare = run({"bash", "-c", attempts}, options);
  CHECK(bare.code == 0);
  CHECK(left_alone(work) == how_many - 12);
}

TEST_CASE("without name rules, more of them than can be mounted are refused with the remedy") {
  const temporary_directory work;
  for (int i = 0; i < 300; ++i)
    work.write(place(i) + "/.env", "");
  run_options options;
  options.cwd = work.path();
  options.limit = milliseconds(120000);
  const auto refused =
      run({ccbox_program(), "run", "--quiet", "--without", "fs_name_deny", "--", "true"}, options);
  CHECK(refused.code == 125);
  CHECK(refused.err.find("bind the project instead of the directory above it") != std::string::npos);
}
