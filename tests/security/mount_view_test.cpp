// What the mounts of the bubblewrap backend hold against a program that wants out, with no system-call filter
// to help. Every refused action is first done without the rule, on a tree of its own, and then succeeds.
#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "support/attacked.hpp"
#include "support/temporary_directory.hpp"

using namespace ccbox;
using namespace ccbox::test;

namespace {

using words = std::vector<std::string>;
namespace fs = std::filesystem;

// A repository with what people protect, and things to attack it with.
void make_project(const temporary_directory& root) {
  root.write(".git/config", "honest");
  root.write(".git/hooks/pre-commit", "honest");
  root.write("sub/deep/.env", "secret");
  root.write(".env", "secret");
  root.write("keys/id", "secret");
  root.write("a/b/notes", "honest");
  root.write("other", "other");
  fs::create_directory(root / "empty");
  fs::create_symlink("../.git/config", root / "a/link-to-config");
  fs::create_symlink("../.env", root / "a/link-to-env");
}

planned_rule mounted(const temporary_directory& root) {
  return as_found(mount_rule(root.path(), 0));
}

struct attack {
  std::string rule;  // relative path of what is protected
  words action;      // "@/x" is x in the project
  std::set<int> refusals;
};

words in_project(words action, const temporary_directory& root) {
  for (auto& word : action)
    for (std::size_t at; (at = word.find('@')) != word.npos;)
      word.replace(at, 1, root.path());
  return action;
}

std::string told(const words& action) {
  std::string text;
  for (const auto& word : action)
    text += word + " ";
  return text;
}

void check_writes_refused(const std::vector<attack>& attacks) {
  for (const auto& one : attacks) {
    INFO(one.rule << ": " << told(one.action));
    {
      const temporary_directory root;
      make_project(root);
      const attacked_enclosure inside(request_for_this_caller({mounted(root)}));
      CHECK(inside.attempt(in_project(one.action, root)) == 0);
    }
    const temporary_directory root;
    make_project(root);
    const auto before = host_listing(root.path());
    const attacked_enclosure inside(
        request_for_this_caller({mounted(root), as_found(write_deny_rule(root / one.rule, 0))}));
    const int error = inside.attempt(in_project(one.action, root));
    CHECK_MESSAGE(one.refusals.count(error) == 1, "errno " << error);
    CHECK(host_listing(root.path()) == before);
  }
}

}  // namespace

TEST_CASE("a protected file cannot be changed, by path or through what leads to it") {
  check_writes_refused({
      {".git/config", {"write", "@/.git/config"}, {EROFS}},
      {".git/config", {"append", "@/.git/config"}, {EROFS}},
      {".git/config", {"open-create", "@/.git/config"}, {EROFS}},
      {".git/config", {"truncate", "@/.git/config"}, {EROFS}},
      {".git/config", {"chmod", "@/.git/config"}, {EROFS}},
      {".git/config", {"chown", "@/.git/config"}, {EROFS}},
      {".git/config", {"utimes", "@/.git/config"}, {EROFS}},
      {".git/config", {"setxattr", "@/.git/config"}, {EROFS}},
      {".git/config", {"reopen", "@/.git/config"}, {EROFS}},
      {".git/config", {"reopen-path", "@/.git/config"}, {EROFS}},
      {".git/config", {"write", "@/a/link-to-config"}, {EROFS}},
      {".git/config", {"write", "/proc/self/root@/.git/config"}, {EROFS}},
      {".git/config", {"write", "/proc/1/root@/.git/config"}, {EROFS}},
      {".git/config", {"write", "@/a/../.git/./config"}, {EROFS}},
  });
}

TEST_CASE("a protected file cannot be removed, replaced or linked") {
  check_writes_refused({
      {".git/config", {"unlink", "@/.git/config"}, {EBUSY}},
      {".git/config", {"rename", "@/.git/config", "@/moved"}, {EBUSY, EXDEV}},
      {".git/config", {"rename", "@/.git/config", "@/.git/moved"}, {EBUSY}},
      {".git/config", {"rename", "@/other", "@/.git/config"}, {EBUSY, EXDEV}},
      {".git/config", {"exchange", "@/other", "@/.git/config"}, {EBUSY, EXDEV}},
      {".git/config", {"link", "@/.git/config", "@/linked"}, {EXDEV}},
      {".env", {"rename", "@/other", "@/.env"}, {EBUSY}},
      {".env", {"exchange", "@/other", "@/.env"}, {EBUSY}},
      {".env", {"link", "@/.env", "@/linked"}, {EXDEV}},
  });
}

TEST_CASE("nothing can be made, moved or removed in a protected directory") {
  check_writes_refused({
      {".git/hooks", {"create", "@/.git/hooks/post-commit"}, {EROFS}},
      {".git/hooks", {"write", "@/.git/hooks/pre-commit"}, {EROFS}},
      {".git/hooks", {"mkdir", "@/.git/hooks/d"}, {EROFS}},
      {".git/hooks", {"mkfifo", "@/.git/hooks/f"}, {EROFS}},
      {".git/hooks", {"symlink", "/bin/sh", "@/.git/hooks/s"}, {EROFS}},
      {".git/hooks", {"link-temporary", "@/.git", "@/.git/hooks/t"}, {EROFS, EXDEV}},
      {".git/hooks", {"link-temporary", "@/.git/hooks", "@/.git/hooks/t"}, {EROFS}},
      {".git/hooks", {"link", "@/other", "@/.git/hooks/l"}, {EROFS, EXDEV}},
      {".git/hooks", {"rename", "@/other", "@/.git/hooks/pre-commit"}, {EROFS, EXDEV}},
      {".git/hooks", {"rename", "@/.git/hooks/pre-commit", "@/moved"}, {EROFS, EXDEV}},
      {".git/hooks", {"unlink", "@/.git/hooks/pre-commit"}, {EROFS}},
      {".git/hooks", {"rename", "@/.git/hooks", "@/.git/old"}, {EBUSY}},
      {"empty", {"rmdir", "@/empty"}, {EBUSY}},
      {"empty", {"rename", "@/empty", "@/a/empty"}, {EBUSY, EXDEV}},
  });
}

TEST_CASE("the directories above a protected path cannot be renamed, exchanged or replaced") {
  check_writes_refused({
      {".git/hooks", {"rename", "@/.git", "@/old"}, {EBUSY}},
      {".git/hooks", {"exchange", "@/.git", "@/a"}, {EBUSY}},
      {".git/hooks", {"exchange", "@/a", "@/.git"}, {EBUSY}},
      {"sub/deep/.env", {"rename", "@/sub", "@/old"}, {EBUSY}},
      {"sub/deep/.env", {"rename", "@/sub/deep", "@/old"}, {EBUSY, EXDEV}},
      {"sub/deep/.env", {"rename", "@/sub/deep", "@/sub/old"}, {EBUSY}},
  });
}

TEST_CASE("a read-only mount inside a writable one is protected in the same way") {
  const auto start = [](const temporary_directory& root, std::uint32_t flags) {
    return std::make_unique<attacked_enclosure>(
        request_for_this_caller({mounted(root), as_found(mount_rule(root / "a/b", flags))}));
  };
  const std::vector<std::pair<words, std::set<int>>> attacks = {
      {{"write", "@/a/b/notes"}, {EROFS}},
      {{"rename", "@/a", "@/old"}, {EBUSY}},
  };
  for (const auto& [action, refusals] : attacks) {
    INFO(told(action));
    const temporary_directory open, root;
    make_project(open);
    make_project(root);
    CHECK(start(open, 0)->attempt(in_project(action, open)) == 0);
    CHECK(refusals.count(start(root, CCBOX_RULE_READ_ONLY)->attempt(in_project(action, root))) == 1);
  }
}

TEST_CASE("what a read deny names cannot be read by any spelling") {
  struct secret {
    const char* rule;
    words action;
  };
  const std::vector<secret> attempts = {
      {".env", {"read", "@/.env"}},
      {".env", {"read", "@/a/link-to-env"}},
      {".env", {"read", "/proc/self/root@/.env"}},
      {".env", {"read", "/proc/1/root@/.env"}},
      {".env", {"read", "/proc/self/cwd@/.env"}},
      {"keys", {"read", "@/keys/id"}},
      {"keys", {"read", "/proc/1/root@/keys/id"}},
      {"keys", {"list", "@/keys"}},
      {"sub/deep/.env", {"read", "@/sub/deep/.env"}},
      {"sub", {"read", "@/sub/deep/.env"}},
  };
  for (const auto& one : attempts) {
    INFO(one.rule << ": " << told(one.action));
    const temporary_directory root;
    make_project(root);
    const auto before = host_listing(root.path());
    {
      const attacked_enclosure open(request_for_this_caller({mounted(root)}));
      const auto seen = open.ask(in_project(one.action, root));
      CHECK(seen.error == 0);
      CHECK(seen.data != "");
    }
    for (const std::uint32_t mode : {0u, static_cast<std::uint32_t>(CCBOX_RULE_READ_ONLY)}) {
      const attacked_enclosure inside(request_for_this_caller(
          {as_found(mount_rule(root.path(), mode)), as_found(read_deny_rule(root / one.rule, 0))}));
      const auto seen = inside.ask(in_project(one.action, root));
      CHECK(seen.data == "");
      // Root keeps CAP_DAC_OVERRIDE: it may look at the mask, which is empty.
      CHECK((seen.error == EACCES || seen.error == ENOENT || (::geteuid() == 0 && seen.error == 0)));
      CHECK(host_listing(root.path()) == before);
    }
  }
}

TEST_CASE("a secret cannot be moved from under its mask or reached by a new name") {
  const std::vector<std::pair<const char*, std::vector<words>>> attempts = {
      {".env", {{"link", "@/.env", "@/copy"}, {"read", "@/copy"}}},
      {".env", {{"rename", "@/.env", "@/copy"}, {"read", "@/copy"}}},
      {".env", {{"exchange", "@/.env", "@/other"}, {"read", "@/other"}}},
      {"keys", {{"rename", "@/keys", "@/copy"}, {"read", "@/copy/id"}}},
      {"sub/deep/.env", {{"rename", "@/sub", "@/copy"}, {"read", "@/copy/deep/.env"}}},
      {"sub/deep/.env", {{"rename", "@/sub/deep", "@/sub/copy"}, {"read", "@/sub/copy/.env"}}},
      {"sub/deep/.env", {{"exchange", "@/sub", "@/a"}, {"read", "@/a/deep/.env"}}},
  };
  for (const auto& [rule, steps] : attempts) {
    INFO(rule << ": " << told(steps[0]));
    const temporary_directory open_root, root;
    make_project(open_root);
    make_project(root);
    {
      const attacked_enclosure open(request_for_this_caller({mounted(open_root)}));
      CHECK(open.attempt(in_project(steps[0], open_root)) == 0);
      CHECK(open.ask(in_project(steps[1], open_root)).data == "secret");
    }
    const auto before = host_listing(root.path());
    const attacked_enclosure inside(
        request_for_this_caller({mounted(root), as_found(read_deny_rule(root / rule, 0))}));
    const int error = inside.attempt(in_project(steps[0], root));
    CHECK((error == EBUSY || error == EXDEV));
    CHECK(inside.ask(in_project(steps[1], root)).data != "secret");
    CHECK(host_listing(root.path()) == before);
  }
}

TEST_CASE("masks are not writable, for their owner neither") {
  const temporary_directory root;
  make_project(root);
  const attacked_enclosure inside(
      request_for_this_caller({mounted(root), as_found(read_deny_rule(root / "keys", 0)),
                               as_found(read_deny_rule(root / ".env", 0))}));
  for (const words& action : {words{"create", "@/keys/new"},
                              {"mkdir", "@/keys/d"},
                              {"chmod", "@/keys"},
                              {"rmdir", "@/keys"},
                              {"link-temporary", "@/keys", "@/keys/t"},
                              {"write", "@/.env"},
                              {"chmod", "@/.env"},
                              {"unlink", "@/.env"},
                              {"utimes", "@/.env"},
                              {"symlink", "x", "@/keys/s"}}) {
    INFO(told(action));
    const int error = inside.attempt(in_project(action, root));
    CHECK((error == EROFS || error == EACCES || error == EBUSY));
  }
}

TEST_CASE("a secret inside a protected directory stays masked") {
  const temporary_directory root;
  make_project(root);
  const attacked_enclosure inside(
      request_for_this_caller({mounted(root), as_found(write_deny_rule(root / "sub", 0)),
                               as_found(read_deny_rule(root / "sub/deep/.env", 0))}));
  CHECK(inside.ask({"read", root / "sub/deep/.env"}).data == "");
  CHECK(inside.attempt({"create", root / "sub/deep/new"}) == EROFS);
  CHECK(inside.attempt({"create", root / "a/new"}) == 0);
}

TEST_CASE("a writable mount inside a protected or masked directory is writable, and nothing around it") {
  const temporary_directory root;
  make_project(root);
  const attacked_enclosure inside(request_for_this_caller(
      {mounted(root), as_found(mount_rule(root / "a/b", 0)), as_found(mount_rule(root / "sub/deep", 0)),
       as_found(write_deny_rule(root / "a", 0)), as_found(read_deny_rule(root / "sub", 0))}));
  CHECK(inside.attempt({"create", root / "a/b/new"}) == 0);
  CHECK(inside.attempt({"create", root / "a/new"}) == EROFS);
  CHECK(inside.ask({"read", root / "sub/deep/.env"}).data == "secret");
  CHECK(inside.attempt({"create", root / "sub/deep/new"}) == 0);
  CHECK(inside.attempt({"create", root / "sub/new"}) != 0);
  CHECK(fs::exists(root / "a/b/new"));
}

TEST_CASE("mounts cannot be taken away, by the enclosure or in namespaces that it makes for itself") {
  const temporary_directory root;
  make_project(root);
  fs::create_directories(root / "plain/one");
  const attacked_enclosure inside(
      request_for_this_caller({mounted(root), as_found(read_deny_rule(root / "sub/deep/.env", 0)),
                               as_found(write_deny_rule(root / ".git/hooks", 0))}));
  CHECK(inside.attempt({"umount", root / "sub/deep/.env"}) == EPERM);
  CHECK(inside.attempt({"remount", root / ".git/hooks"}) == EPERM);
  CHECK(inside.attempt({"bind", root / "a", root / "plain"}) == EPERM);
  // The same calls work there on what is not protected.
  CHECK(inside.attempt({"bind-in-new-namespaces", root / "plain/one", root / "plain"}) == 0);
  CHECK(inside.attempt({"umount-in-new-namespaces", root / "sub/deep/.env"}) == EINVAL);
  CHECK(inside.attempt({"remount-in-new-namespaces", root / ".git/hooks"}) == EPERM);
  CHECK(inside.attempt({"bind-in-new-namespaces", root / "sub/deep", root / "plain"}) == EINVAL);
  CHECK(inside.attempt({"bind-in-new-namespaces", root.path(), root / "plain"}) == EINVAL);
}
