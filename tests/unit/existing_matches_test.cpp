#include "existing_matches.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "support/temporary_directory.hpp"

using namespace ccbox;
namespace fs = std::filesystem;

namespace {

glob_set set_of(std::initializer_list<std::string_view> patterns) {
  glob_set out;
  for (const auto pattern : patterns) {
    auto g = compile_glob(pattern);
    REQUIRE(g.has_value());
    out.add(std::move(*g));
  }
  return out;
}

existing_matches find(const std::string& root, const glob_set& deny, const glob_set& exempt = {},
                      std::set<std::string> skip = {}) {
  auto found =
      find_existing_matches({root, deny.start(), exempt.start(), std::move(skip), 100}, deny, exempt);
  REQUIRE(found.has_value());
  return *found;
}

std::vector<std::string> paths(const test::temporary_directory& dir, const existing_matches& found) {
  std::vector<std::string> out;
  for (const auto& match : found.matches)
    out.push_back(std::string(path_below(match.path, dir.path())));
  return out;
}

using strings = std::vector<std::string>;

}  // namespace

TEST_CASE("names are found at any depth, whatever kind of file they are") {
  const test::temporary_directory dir;
  dir.write("a/b/c/d/.env", "x");
  dir.write("server.KEY", "x");
  dir.write("plain", "x");
  fs::create_directory(dir / "dir.pem");
  REQUIRE(::mkfifo((dir / "f.key").c_str(), 0600) == 0);
  fs::create_symlink("nowhere", dir / "link.key");
  const auto found = find(dir.path(), set_of({".env", "*.key", "*.pem"}));
  CHECK(paths(dir, found) == strings{"a/b/c/d/.env", "dir.pem", "f.key", "link.key", "server.KEY"});
  CHECK(found.matches[1].type == path_type::directory);
  CHECK(found.matches[2].type == path_type::other);
  CHECK(found.matches[3].type == path_type::symlink);
  CHECK(found.matches[0].deny == 0);
}

TEST_CASE("a directory that is denied is one match and is not entered") {
  const test::temporary_directory dir;
  dir.write("x.key/a.key", "x");
  dir.write("x.key/b.key", "x");
  CHECK(paths(dir, find(dir.path(), set_of({"*.key"}))) == strings{"x.key"});
}

TEST_CASE("a directory of which everything is denied is one match") {
  const test::temporary_directory dir;
  dir.write("r/.git/hooks/pre-commit", "x");
  dir.write("r/.git/hooks/post-commit.sample", "x");
  dir.write("r/.config/fish/conf.d/x.fish", "x");
  fs::create_directories(dir / "empty/.git/hooks");
  const auto found =
      find(dir.path(), set_of({"**/.git/hooks/*", "**/.config/fish/**"}), set_of({"*.sample"}));
  CHECK(paths(dir, found) == strings{"empty/.git/hooks", "r/.config/fish", "r/.git/hooks"});
}

TEST_CASE("an exempt name is not a match") {
  const test::temporary_directory dir;
  dir.write(".env.example", "x");
  dir.write("a/.env.production", "x");
  dir.write("b/.ENV.Example", "x");
  CHECK(paths(dir, find(dir.path(), set_of({".env.*"}), set_of({".env.example"}))) ==
        strings{"a/.env.production"});
}

TEST_CASE("symbolic links are not followed") {
  const test::temporary_directory dir;
  const test::temporary_directory outside;
  outside.write("x.key", "x");
  fs::create_directory_symlink(outside.path(), dir / "out");
  fs::create_directory_symlink(".", dir / "loop");
  CHECK(find(dir.path(), set_of({"*.key"})).matches.empty());
}

TEST_CASE("a link that stands for a part of a glob is followed for that glob alone") {
  const test::temporary_directory dir;
  const test::temporary_directory outside;
  outside.write("hooks/x", "x");
  outside.write("config", "x");
  outside.write("other/.env", "x");
  fs::create_directory_symlink(outside.path(), dir / ".git");
  fs::create_directory_symlink("..", outside / "loop");
  const auto found = find(dir.path(), set_of({"**/.git/hooks/*", "**/.git/config", ".env"}));
  REQUIRE(found.links.size() == 1);
  CHECK(found.links[0].path == dir / ".git");
  CHECK(found.links[0].target == outside.path());
  REQUIRE(found.matches.size() == 2);
  CHECK(found.matches[0].path == outside / "config");
  CHECK(found.matches[1].path == outside / "hooks");
}

TEST_CASE("links that stand for a part of a glob and go in circles come to an end") {
  const test::temporary_directory dir;
  fs::create_directories(dir / ".git/modules/a");
  fs::create_directory_symlink("..", dir / ".git/modules/a/up");
  fs::create_directory_symlink("../../..", dir / ".git/modules/a/out");
  dir.write(".git/modules/a/hooks/x", "x");
  const auto found = find(dir.path(), set_of({"**/.git/modules/**/hooks/*"}));
  CHECK(std::count_if(found.matches.begin(), found.matches.end(),
                      [&](const existing_match& m) { return m.path == dir / ".git/modules/a/hooks"; }) >= 1);
}

TEST_CASE("what is denied already is not looked into") {
  const test::temporary_directory dir;
  dir.write(".ssh/id.pem", "x");
  dir.write("w/id.pem", "x");
  CHECK(paths(dir, find(dir.path(), set_of({"*.pem"}), {}, {dir / ".ssh"})) == strings{"w/id.pem"});
}

TEST_CASE("odd names are matched as they are") {
  const test::temporary_directory dir;
  for (const std::string name : {"[WIP] p", "a[b]", "new\nline", "back\\slash", "st*r", "\xff\xfe"})
    dir.write(name + "/.env", "x");
  CHECK(find(dir.path(), set_of({".env"})).matches.size() == 6);
}

TEST_CASE("more matches than the limit are refused; the message names the root and the number") {
  const test::temporary_directory dir;
  for (int i = 0; i < 11; ++i)
    dir.write("d/" + std::to_string(i) + ".key", "x");
  const auto deny = set_of({"*.key"});
  CHECK(find_existing_matches({dir.path(), deny.start(), {}, {}, 11}, deny, {}).has_value());
  const auto refused = find_existing_matches({dir.path(), deny.start(), {}, {}, 10}, deny, {});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == error_code::too_large);
  CHECK(refused.error().what.find("more than 10 existing files below '" + dir.path() + "'") == 0);
  CHECK(refused.error().hint.find("max_existing_matches") != std::string::npos);
}

TEST_CASE("a directory that cannot be looked into counts as a match") {
  const test::temporary_directory dir;
  dir.write("shut/.env", "x");
  REQUIRE(::chmod((dir / "shut").c_str(), 0) == 0);
  const auto found = find(dir.path(), set_of({".env"}));
  REQUIRE(found.matches.size() == 1);
  if (::geteuid() == 0) {  // root sees through it
    CHECK(found.matches[0].path == dir / "shut/.env");
  } else {
    CHECK(found.matches[0] == existing_match{dir / "shut", path_type::directory, std::nullopt});
  }
  REQUIRE(::chmod((dir / "shut").c_str(), 0700) == 0);
}

TEST_CASE("where a link stands for a part of a glob, a target that cannot be looked into counts as a match") {
  const test::temporary_directory dir;
  const test::temporary_directory outside;
  outside.write("shut/config", "x");
  REQUIRE(::chmod((outside / "shut").c_str(), 0300) == 0);
  fs::create_directory_symlink(outside / "shut", dir / ".git");
  const auto found = find(dir.path(), set_of({"**/.git/config"}));
  REQUIRE(found.matches.size() == 1);
  if (::geteuid() == 0) {  // root sees through it
    CHECK(found.matches[0].path == outside / "shut/config");
  } else {
    CHECK(found.matches[0] == existing_match{outside / "shut", path_type::directory, std::nullopt});
  }
  REQUIRE(::chmod((outside / "shut").c_str(), 0700) == 0);
}

TEST_CASE("a tree that is too deep behind a link is denied from there on") {
  const test::temporary_directory dir;
  const test::temporary_directory outside;
  std::string path = outside.path();
  for (int i = 0; i < 120; ++i)
    path += "/d";
  fs::create_directories(path);
  fs::create_directory_symlink(outside.path(), dir / ".git");
  const auto found = find(dir.path(), set_of({"**/.git/modules/**/hooks/*", "**/.git/**/d/config"}));
  REQUIRE(found.matches.size() == 1);
  CHECK_FALSE(found.matches[0].deny);
  CHECK(found.matches[0].type == path_type::directory);
}

TEST_CASE("a tree that is too deep is denied from there on") {
  const test::temporary_directory dir;
  std::string path = dir.path();
  for (int i = 0; i < 120; ++i)
    path += "/d";
  fs::create_directories(path);
  const auto found = find(dir.path(), set_of({".env"}));
  REQUIRE(found.matches.size() == 1);
  CHECK_FALSE(found.matches[0].deny);
  CHECK(found.matches[0].type == path_type::directory);
}

TEST_CASE("a state that has got somewhere already goes on from there") {
  const test::temporary_directory dir;
  dir.write("hooks/pre-commit", "x");
  dir.write("config", "x");
  const auto deny = set_of({"**/.git/hooks/*", "**/.git/config"});
  const auto found =
      find_existing_matches({dir.path(), deny.step(deny.start(), ".git"), {}, {}, 10}, deny, {});
  REQUIRE(found.has_value());
  CHECK(paths(dir, *found) == strings{"config", "hooks"});
}

TEST_CASE("a .git file leads to the directories whose hooks git runs") {
  const test::temporary_directory dir;
  dir.write("main/store/worktrees/w/commondir", "../..\n");
  dir.write("main/store/hooks/x", "x");
  dir.write("w/.git", "gitdir: " + dir.path() + "/main/store/worktrees/w\n");
  dir.write("sub/.git", "gitdir: ../modules/sub\n");
  dir.write("modules/sub/config", "x");
  dir.write("odd/.git", "not a git file\n");
  dir.write("gone/.git", "gitdir: /no/such/directory\n");
  const auto found = find(dir.path(), set_of({"*.none"}));
  CHECK(found.git_directories ==
        strings{dir / "main/store", dir / "main/store/worktrees/w", dir / "modules/sub"});
  CHECK(found.git_files == strings{dir / "gone/.git", dir / "sub/.git", dir / "w/.git"});
}

TEST_CASE("a bare repository is found by what it is made of") {
  const test::temporary_directory dir;
  dir.write("mirror/HEAD", "ref: refs/heads/main\n");
  fs::create_directories(dir / "mirror/objects");
  fs::create_directories(dir / "mirror/refs");
  dir.write("shared/HEAD", "ref: refs/heads/main\n");
  fs::create_directory_symlink("../mirror/objects", dir / "shared/objects");
  fs::create_directory_symlink("../mirror/refs", dir / "shared/refs");
  dir.write("almost/HEAD", "x");
  dir.write("almost/objects", "x");
  CHECK(find(dir.path(), set_of({"*.none"})).git_directories == strings{dir / "mirror", dir / "shared"});
}

TEST_CASE("a root that is missing is an error that names it") {
  const test::temporary_directory dir;
  const auto found = find_existing_matches({dir / "none", {}, {}, {}, 10}, set_of({"x"}), {});
  REQUIRE_FALSE(found.has_value());
  CHECK(found.error().code == error_code::not_found);
  CHECK(found.error().what.find("none") != std::string::npos);
}

TEST_CASE("kernel file systems are not walked") {
  const auto deny = set_of({"status"});
  const auto found = find_existing_matches({"/proc", deny.start(), {}, {}, 10}, deny, {});
  REQUIRE(found.has_value());
  CHECK(found->matches.empty());
}

TEST_CASE("an absolute glob expands to what exists") {
  const test::temporary_directory dir;
  dir.write("p/one/logins.json", "x");
  dir.write("p/two/logins.json", "x");
  dir.write("p/two/deep/logins.json", "x");
  dir.write("p/two/other", "x");
  auto found = expand_glob(dir / "p/*/logins.json", 10);
  REQUIRE(found.has_value());
  CHECK(*found == strings{dir / "p/one/logins.json", dir / "p/two/logins.json"});
  found = expand_glob(dir / "no/such/*", 10);
  REQUIRE(found.has_value());
  CHECK(found->empty());
  CHECK_FALSE(expand_glob(dir / "p/*/logins.json", 1).has_value());
}

TEST_CASE("private entries are those that not everybody may read") {
  const test::temporary_directory dir;
  dir.write("open/public", "x");
  dir.write("open/secret", "x");
  dir.write("shut/inner", "x");
  fs::create_symlink("open/secret", dir / "link");
  ::chmod((dir / "open").c_str(), 0755);
  ::chmod((dir / "open/public").c_str(), 0644);
  ::chmod((dir / "open/secret").c_str(), 0640);
  ::chmod((dir / "shut").c_str(), 0750);
  const auto found = find_private_entries(dir.path(), 10);
  REQUIRE(found.has_value());
  CHECK(*found == strings{dir / "open/secret", dir / "shut"});
  CHECK_FALSE(find_private_entries(dir.path(), 1).has_value());
}
