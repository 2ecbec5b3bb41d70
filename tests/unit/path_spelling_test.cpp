#include "path_spelling.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "support/temporary_directory.hpp"

using namespace ccbox;
namespace fs = std::filesystem;

TEST_CASE("normalise_path removes doubled slashes, dots and trailing slashes and nothing else") {
  CHECK(normalise_path("//a///b/./c/") == "/a/b/c");
  CHECK(normalise_path("/") == "/");
  CHECK(normalise_path("///") == "/");
  CHECK(normalise_path("/.") == "/");
  CHECK(normalise_path("/a/../b") == "/a/../b");
  CHECK(normalise_path("/a/.../..b/.c") == "/a/.../..b/.c");
  CHECK(normalise_path("/[WIP] x/a\\b/n\nl/\xff") == "/[WIP] x/a\\b/n\nl/\xff");
}

TEST_CASE("is_within does not take a sibling with the same prefix for something inside") {
  CHECK(is_within("/w/path", "/w/path"));
  CHECK(is_within("/w/path/x", "/w/path"));
  CHECK_FALSE(is_within("/w/path-evil", "/w/path"));
  CHECK_FALSE(is_within("/w", "/w/path"));
  CHECK(is_within("/anything", "/"));
  CHECK(is_within("/", "/"));
}

TEST_CASE("path_below and join_path undo each other") {
  for (const std::string directory : {"/", "/w", "/w/x"})
    for (const std::string below : {"", "a", "a/b"})
      CHECK(path_below(join_path(directory, below), directory) == below);
  CHECK(parent_path("/a/b") == "/a");
  CHECK(parent_path("/a") == "/");
  CHECK(parent_path("/") == "/");
  CHECK(last_component("/a/b") == "b");
}

TEST_CASE("a path without links has one spelling") {
  const test::temporary_directory dir;
  dir.write("a/file", "x");
  const auto s = spell_path(dir / "a//./file");
  CHECK(s.literal == dir / "a/file");
  CHECK(s.resolved == s.literal);
  CHECK_FALSE(s.through_symlink);
  CHECK(s.type == path_type::file);
  CHECK(s.resolved_type == path_type::file);
  CHECK_FALSE(s.magic);
}

TEST_CASE("a link keeps its literal spelling beside the resolved one") {
  const test::temporary_directory dir;
  dir.write("real/hooks/x", "x");
  fs::create_directory_symlink("real", dir / "link");
  const auto last = spell_path(dir / "link");
  CHECK(last.type == path_type::symlink);
  CHECK(last.resolved == dir / "real");
  CHECK(last.resolved_type == path_type::directory);
  const auto between = spell_path(dir / "link/hooks");
  CHECK(between.literal == dir / "link/hooks");
  CHECK(between.resolved == dir / "real/hooks");
  CHECK(between.through_symlink);
  CHECK(between.type == path_type::directory);
}

TEST_CASE("what does not exist is kept as written below what does") {
  const test::temporary_directory dir;
  dir.write("real/x", "x");
  fs::create_directory_symlink(dir / "real", dir / "link");
  const auto s = spell_path(dir / "link/no/such");
  CHECK(s.literal == dir / "link/no/such");
  CHECK(s.resolved == dir / "real/no/such");
  CHECK(s.type == path_type::missing);
  CHECK(s.resolved_type == path_type::missing);
  const auto none = spell_path(dir / "no/such");
  CHECK(none.resolved == none.literal);
}

TEST_CASE("a dangling link resolves to what it would create") {
  const test::temporary_directory dir;
  fs::create_symlink("no/where", dir / "lnk");
  const auto s = spell_path(dir / "lnk");
  CHECK(s.type == path_type::symlink);
  CHECK(s.resolved == dir / "no/where");
  CHECK(s.resolved_type == path_type::missing);
}

TEST_CASE("a loop of links is kept as written") {
  const test::temporary_directory dir;
  fs::create_symlink("b", dir / "a");
  fs::create_symlink("a", dir / "b");
  const auto s = spell_path(dir / "a/x");
  CHECK(s.resolved == dir / "a/x");
  CHECK(s.through_symlink);
  CHECK(s.resolved_type == path_type::missing);
}

TEST_CASE("`..` after a link leads where the kernel says, not where the text says") {
  const test::temporary_directory dir;
  dir.write("far/away/x", "x");
  fs::create_directory_symlink(dir / "far/away", dir / "link");
  CHECK(spell_path(dir / "link/../secret").literal == dir / "far/secret");
  CHECK(spell_path("/../../etc").literal == "/etc");
  CHECK(spell_path(dir / "far/..").literal == dir.path());
}

TEST_CASE("a path into or through /proc, /dev or /sys is marked") {
  const test::temporary_directory dir;
  fs::create_symlink("/proc/self/cwd", dir / "cwd");
  CHECK(spell_path("/proc/self/fd/0").magic);
  CHECK(spell_path("/dev/fd").magic);
  CHECK(spell_path("/sys").magic);
  CHECK(spell_path(dir / "cwd").magic);
  CHECK(spell_path(dir / "cwd/../x").magic);
  CHECK_FALSE(spell_path("/process").magic);
}

TEST_CASE("a directory that may not be searched is named") {
  if (::geteuid() == 0) {  // root searches everything
    const test::temporary_directory dir;
    CHECK(spell_path(dir / "x/y").blocked_by.empty());
    return;
  }
  const test::temporary_directory dir;
  dir.write("shut/secret", "x");
  REQUIRE(::chmod((dir / "shut").c_str(), 0) == 0);
  const auto s = spell_path(dir / "shut/secret");
  CHECK(s.blocked_by == dir / "shut");
  CHECK(s.type == path_type::missing);
  REQUIRE(::chmod((dir / "shut").c_str(), 0700) == 0);
}
