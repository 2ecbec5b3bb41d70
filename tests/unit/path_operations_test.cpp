#include "path_operations.hpp"

#include <doctest/doctest.h>

#include <map>

#include "support/policy_bench.hpp"

using namespace ccbox;
using namespace ccbox::test;

namespace {

// One line for all: what may be done, what may not, and by which errno.
std::string said(const policy& p, const std::string& path) {
  std::string text;
  for (const auto& each : check_path(p, path).operations) {
    text += (text.empty() ? "" : ", ") + std::string(each.name) + " ";
    if (each.may == path_operation::verdict::succeed)
      text += "yes";
    else if (each.may == path_operation::verdict::depend)
      text += "depends";
    else
      text += each.why.substr(0, each.why.find_first_of(":, "));
  }
  return text;
}

}  // namespace

TEST_CASE("an ordinary file may be used in every way, there or not") {
  policy_bench bench;
  bench.write("file");
  const auto p = bench.compile();
  CHECK(said(p, bench.work + "/file") ==
        "read yes, write yes, create EEXIST, rename to it yes, rename it yes, link to it EEXIST, link of it "
        "yes, "
        "remove yes");
  CHECK(
      said(p, bench.work + "/none") ==
      "read ENOENT, write ENOENT, create yes, rename to it yes, rename it ENOENT, link to it yes, link of it "
      "ENOENT, remove ENOENT");
}

TEST_CASE("a protected name may be used in none that changes it, there or not") {
  policy_bench bench;
  bench.write(".env");
  const auto p = bench.compile();
  CHECK(said(p, bench.work + "/.env") ==
        "read yes, write EACCES, create EEXIST, rename to it EACCES, rename it EACCES, link to it EEXIST, "
        "link of "
        "it EACCES, remove EACCES");
  CHECK(said(p, bench.work + "/a/b/X.KEY") ==
        "read ENOENT, write ENOENT, create EACCES, rename to it EACCES, rename it ENOENT, link to it EACCES, "
        "link "
        "of it ENOENT, remove ENOENT");
}

TEST_CASE("git's configuration comes into place vetted where it is new, and stays where it is the owner's") {
  policy_bench bench;
  bench.write("old/.git/config");
  const auto p = bench.compile();
  CHECK(
      said(p, bench.work + "/new/.git/config") ==
      "read ENOENT, write ENOENT, create depends, rename to it depends, rename it ENOENT, link to it EACCES, "
      "link of it ENOENT, remove ENOENT");
  CHECK(said(p, bench.work + "/old/.git/config") ==
        "read yes, write EACCES, create EEXIST, rename to it EACCES, rename it EACCES, link to it EEXIST, "
        "link of "
        "it EACCES, remove EACCES");
}

TEST_CASE("what may be new is made once; a template is nobody's affair") {
  policy_bench bench;
  const auto p = bench.compile();
  CHECK(said(p, bench.work + "/r/.git/worktrees/w/commondir") ==
        "read ENOENT, write ENOENT, create depends, rename to it EACCES, rename it ENOENT, link to it "
        "EACCES, link "
        "of it ENOENT, remove ENOENT");
  const auto answer = check_path(p, bench.work + "/r/.git/hooks/a.sample");
  CHECK(answer.operations.at(2).may == path_operation::verdict::succeed);
  CHECK(answer.operations.at(2).why == "exempt");
  CHECK(p.rules.at(*answer.operations.at(2).rule).kind == rule_kind::name_exempt);
  CHECK(said(p, bench.work + "/r/.git/hooks/a").find("create EACCES") != std::string::npos);
}

TEST_CASE("what no mount shows, what is read-only, and what is the session's own have answers of their own") {
  policy_bench bench;
  bench.dir.write("ro/file", "x");
  bench.mount(bench.dir / "ro", true);
  const auto p = bench.compile();
  CHECK(said(p, "/no/where") ==
        "read ENOENT, write ENOENT, create ENOENT, rename to it ENOENT, rename it ENOENT, link to it ENOENT, "
        "link "
        "of it ENOENT, remove ENOENT");
  CHECK(said(p, (bench.dir / "ro") + "/file") ==
        "read yes, write EROFS, create EEXIST, rename to it EROFS, rename it EROFS, link to it EEXIST, link "
        "of it "
        "EXDEV, remove EROFS");
  CHECK(said(p, p.tmpdir + "/.env").find("create yes") != std::string::npos);
  CHECK(check_path(p, "").operations.empty());
}

TEST_CASE("a directory goes nowhere while something in it is a mount") {
  policy_bench bench;
  bench.write("held/.env");
  bench.write("free/file");
  const auto p = bench.compile();
  const auto answer = [&](const std::string& name) {
    return check_path(p, bench.work + "/" + name).operations.at(4);
  };
  CHECK(answer("held").may == path_operation::verdict::fail);
  CHECK(answer("held").why.find("held/.env") != std::string::npos);
  CHECK(answer("free").may == path_operation::verdict::depend);
}

TEST_CASE("a rule that was given up forbids nothing") {
  policy_bench bench;
  bench.spec.without = {"fs_name_deny"};
  CHECK(said(bench.compile(), bench.work + "/.env").find("create yes, rename to it yes") !=
        std::string::npos);
}
