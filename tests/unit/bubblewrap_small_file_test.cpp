#include "plugins/bubblewrap/small_file.hpp"

#include <doctest/doctest.h>

#include "support/temporary_directory.hpp"

using ccbox::bubblewrap::read_small_file;

TEST_CASE("a small file is read whole, one of /proc too") {
  const ccbox::test::temporary_directory directory;
  const std::string bytes = std::string("a\0b\n", 4) + std::string(10'000, 'x');
  CHECK(read_small_file(directory.write("file", bytes).c_str()) == bytes);
  CHECK(read_small_file("/proc/self/status").starts_with("Name:"));
}

TEST_CASE("what cannot be read is empty, and what is large or has no end is cut") {
  const ccbox::test::temporary_directory directory;
  CHECK(read_small_file((directory / "none").c_str()).empty());
  CHECK(read_small_file(directory.path().c_str()).empty());
  CHECK(read_small_file("/dev/zero").size() == 64 << 10);
}
