#include "plugins/bubblewrap/paths.hpp"

#include <doctest/doctest.h>

using namespace ccbox::bubblewrap;

TEST_CASE("one path in two spellings has one normal form") {
  CHECK(normal_path("/a//b/./c/") == "/a/b/c");
  CHECK(normal_path("/") == "/");
  CHECK(normal_path("//.//") == "/");
  CHECK(normal_path("/...") == "/...");
  CHECK(normal_path("/a\n[*]\\\xff") == "/a\n[*]\\\xff");
}

TEST_CASE("relative paths, parents and NUL have no normal form") {
  CHECK_FALSE(normal_path(""));
  CHECK_FALSE(normal_path("a/b"));
  CHECK_FALSE(normal_path("/a/../b"));
  CHECK_FALSE(normal_path("/.."));
  CHECK_FALSE(normal_path(std::string_view("/a\0b", 4)));
}

TEST_CASE("a name that begins like the root is not below it") {
  CHECK(covers("/w/path", "/w/path"));
  CHECK(covers("/w/path", "/w/path/x"));
  CHECK_FALSE(covers("/w/path", "/w/path-evil"));
  CHECK_FALSE(covers("/w/path", "/w"));
  CHECK(covers("/", "/w"));
}

TEST_CASE("a path is found where its mount shows it") {
  CHECK(rebase("/srv/a/b", "/srv/a", "/x") == "/x/b");
  CHECK(rebase("/srv/a", "/srv/a", "/x") == "/x");
  CHECK(rebase("/srv/a/b", "/srv/a", "/") == "/b");
  CHECK(rebase("/srv/a", "/srv/a", "/") == "/");
  CHECK(rebase("/b", "/", "/x") == "/x/b");
  CHECK(rebase("/", "/", "/x") == "/x");
}

TEST_CASE("depth counts names") {
  CHECK(depth("/") == 0);
  CHECK(depth("/a") == 1);
  CHECK(depth("/a/b") == 2);
  CHECK(parent("/a/b") == "/a");
  CHECK(parent("/a") == "/");
  CHECK(parent("/") == "/");
}

TEST_CASE("what is shown to people has no byte that a terminal could act on") {
  CHECK(shown("/a b") == "'/a b'");
  CHECK(shown("/a\x1b[31m\n'\\\xff") == "'/a\\x1b[31m\\n\\'\\\\\\xff'");
}
