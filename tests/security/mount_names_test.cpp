// Names and kinds of files that made other sandboxes fail to start, or protect the wrong thing.
#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "support/attacked.hpp"
#include "support/temporary_directory.hpp"

using namespace ccbox;
using namespace ccbox::test;

namespace {

namespace fs = std::filesystem;

planned_rule mounted(const std::string& path, std::uint32_t flags = 0) {
  return as_found(mount_rule(path, flags));
}
planned_rule no_write(const std::string& path) {
  return as_found(write_deny_rule(path, 0));
}
planned_rule no_read(const std::string& path) {
  return as_found(read_deny_rule(path, 0));
}
// What the policy adds for a path through a symbolic link.
planned_rule target_of(planned_rule rule) {
  rule.path = rule.guest_path = fs::canonical(rule.path);
  rule = as_found(std::move(rule));
  rule.flags |= CCBOX_RULE_TARGET;
  return rule;
}

}  // namespace

TEST_CASE(
    "names with glob characters, newlines, backslashes and bytes that are no text are taken literally") {
  for (const std::string name :
       {"[WIP] project", "a[b]", "*", "?", "new\nline", "back\\slash", "back\\040slash", "\xff\xfe\x80",
        "tab\there", "trailing ", "--args", "#x", "quote'\"", "é"}) {
    INFO(name);
    const temporary_directory root;
    const auto project = root / name;
    root.write(name + "/" + name + "/" + name, "secret");
    root.write(name + "/" + name + "/kept", "honest");
    root.write(name + "/plain", "honest");
    root.write("a[b]x/plain", "neighbour");
    const attacked_enclosure inside(
        request_for_this_caller({mounted(project), no_read(project + "/" + name + "/" + name),
                                 no_write(project + "/" + name + "/kept")}));
    CHECK(inside.ask({"read", project + "/plain"}).data == "honest");
    CHECK(inside.attempt({"write", project + "/plain"}) == 0);
    CHECK(inside.ask({"read", project + "/" + name + "/" + name}).data == "");
    CHECK(inside.ask({"read", project + "/" + name + "/kept"}).data == "honest");
    CHECK(inside.attempt({"write", project + "/" + name + "/kept"}) == EROFS);
    CHECK(inside.attempt({"rename", project + "/" + name, project + "/moved"}) == EBUSY);
  }
}

TEST_CASE("a protected path that is a symbolic link starts, and its target is protected") {
  const temporary_directory root;
  root.write("dotfiles/bashrc", "honest");
  root.write("shared-hooks/pre-commit", "honest");
  root.write("secrets/env", "secret");
  fs::create_directory(root / ".git");
  fs::create_symlink("dotfiles/bashrc", root / ".bashrc");
  fs::create_symlink(root / "shared-hooks", root / ".git/hooks");
  fs::create_symlink("secrets", root / "linked");
  const attacked_enclosure inside(request_for_this_caller(
      {mounted(root.path()), no_write(root / ".bashrc"), target_of(no_write(root / ".bashrc")),
       no_write(root / ".git/hooks"), target_of(no_write(root / ".git/hooks")), no_read(root / "linked/env"),
       target_of(no_read(root / "linked/env"))}));
  CHECK(inside.attempt({"write", root / ".bashrc"}) == EROFS);
  CHECK(inside.attempt({"write", root / "dotfiles/bashrc"}) == EROFS);
  CHECK(inside.attempt({"rename", root / "dotfiles", root / "moved"}) == EBUSY);
  CHECK(inside.attempt({"create", root / ".git/hooks/post-commit"}) == EROFS);
  CHECK(inside.ask({"read", root / "linked/env"}).data == "");
  CHECK(inside.ask({"read", root / "secrets/env"}).data == "");
  CHECK(inside.attempt({"create", root / "secrets/new"}) == 0);
}

TEST_CASE(
    "a dangling symbolic link among the denies does not keep the enclosure from starting, or make its "
    "target") {
  const temporary_directory root;
  const temporary_directory outside;
  fs::create_symlink(outside / "made", root / ".env");
  fs::create_symlink("/oldroot" + (outside / "made"), root / ".bashrc");
  const auto before = host_listing(outside.path());
  const attacked_enclosure inside(
      request_for_this_caller({mounted(root.path()), no_read(root / ".env"), no_write(root / ".bashrc")}));
  CHECK(inside.attempt({"create", root / "x"}) == 0);
  CHECK(host_listing(outside.path()) == before);
}

TEST_CASE("a .git that is a file, as in worktrees and submodules, is protected as one") {
  const temporary_directory root;
  root.write(".git", "gitdir: /elsewhere");
  const attacked_enclosure inside(request_for_this_caller({mounted(root.path()), no_write(root / ".git")}));
  CHECK(inside.ask({"read", root / ".git"}).data == "gitdir: /elsewhere");
  CHECK(inside.attempt({"write", root / ".git"}) == EROFS);
  CHECK(inside.attempt({"unlink", root / ".git"}) == EBUSY);
}

TEST_CASE("one path denied in two spellings, and twice, is one mount") {
  const temporary_directory root;
  root.write("d/.env", "secret");
  auto second = no_read(root / "d/.env");
  second.path = root / "d//./.env/";
  const attacked_enclosure inside(
      request_for_this_caller({mounted(root.path()), no_read(root / "d/.env"), second,
                               no_write(root / "d/.env"), no_read(root / "d/.env")}));
  CHECK(inside.ask({"read", root / "d/.env"}).data == "");
}

TEST_CASE("denies below a read-only mount, or where nothing is, keep nothing from starting") {
  const temporary_directory root;
  root.write("opt/.claude/settings", "honest");
  const attacked_enclosure inside(request_for_this_caller(
      {mounted(root / "opt", CCBOX_RULE_READ_ONLY), no_write(root / "opt/.claude"),
       no_write(root / "opt/.mcp.json"), no_read(root / "opt/.netrc"), no_write("/nowhere/.zshrc")}));
  CHECK(inside.attempt({"write", root / "opt/.claude/settings"}) == EROFS);
  CHECK(inside.attempt({"create", root / "opt/.mcp.json"}) == EROFS);
}

TEST_CASE("a file can be mounted by itself, writable or not") {
  const temporary_directory root;
  root.write("one", "honest");
  root.write("two", "honest");
  const attacked_enclosure inside(
      request_for_this_caller({mounted(root / "one"), mounted(root / "two", CCBOX_RULE_READ_ONLY)}));
  CHECK(inside.attempt({"write", root / "one"}) == 0);
  CHECK(inside.attempt({"write", root / "two"}) == EROFS);
  CHECK(inside.attempt({"unlink", root / "one"}) == EBUSY);
  CHECK(inside.ask({"list", root.path()}).data == "one\ntwo\n");
}

TEST_CASE("pipes, sockets and devices can be masked and protected like files") {
  const temporary_directory root;
  REQUIRE(::mkfifo((root / "pipe").c_str(), 0600) == 0);
  REQUIRE(::mkfifo((root / "kept").c_str(), 0600) == 0);
  const attacked_enclosure inside(
      request_for_this_caller({mounted(root.path()), no_read(root / "pipe"), no_write(root / "kept")}));
  CHECK(inside.attempt({"unlink", root / "pipe"}) == EBUSY);
  CHECK(inside.attempt({"chmod", root / "kept"}) == EROFS);
  CHECK(inside.ask({"stat", root / "pipe"}).data == "100000");
}

TEST_CASE("a project of somebody else: root works in it and the files keep their owner") {
  const temporary_directory root;
  root.write("project/mine", "honest");
  root.write("project/.git/config", "honest");
  const uid_t owner = ::geteuid() == 0 ? 65534 : ::geteuid();
  for (const char* name : {"project", "project/mine", "project/.git", "project/.git/config"}) {
    REQUIRE(::lchown((root / name).c_str(), owner, static_cast<gid_t>(-1)) == 0);
    REQUIRE(::chmod((root / name).c_str(), fs::is_directory(root / name) ? 0700 : 0600) == 0);
  }
  const attacked_enclosure inside(
      request_for_this_caller({mounted(root / "project"), no_write(root / "project/.git/config")}));
  CHECK(inside.attempt({"write", root / "project/mine"}) == 0);
  CHECK(inside.attempt({"chmod", root / "project/mine"}) == 0);
  CHECK(inside.attempt({"create", root / "project/new"}) == 0);
  CHECK(inside.attempt({"write", root / "project/.git/config"}) == EROFS);
  struct stat status {};
  REQUIRE(::stat((root / "project/mine").c_str(), &status) == 0);
  CHECK(status.st_uid == owner);
  REQUIRE(::stat((root / "project/new").c_str(), &status) == 0);
  CHECK(status.st_uid == ::geteuid());
}
