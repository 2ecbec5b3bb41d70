#include "mountinfo.hpp"

#include <doctest/doctest.h>

using namespace ccbox;

TEST_CASE("a line says what is mounted where, with however many optional fields") {
  for (const std::string optional : {"", "shared:1 ", "shared:1 master:2 "}) {
    CAPTURE(optional);
    const auto found = parse_mountinfo("36 35 0:30 /a /sys/fs/cgroup/cpu rw,nosuid " + optional +
                                       "- cgroup cgroup rw,cpu,cpuacct\n");
    REQUIRE(found.size() == 1);
    CHECK(found[0].root == "/a");
    CHECK(found[0].place == "/sys/fs/cgroup/cpu");
    CHECK(found[0].type == "cgroup");
    CHECK(found[0].options == "rw,cpu,cpuacct");
  }
}

TEST_CASE("blanks, newlines and backslashes of a path come back; what only looks like one of them stays") {
  const auto found = parse_mountinfo("1 2 3:4 / /a\\040b\\012c\\134d\\09 rw - ext4 /dev/x rw\n");
  REQUIRE(found.size() == 1);
  CHECK(found[0].place == "/a b\nc\\d\\09");
}

TEST_CASE("a source without a name is one all the same") {
  const auto found = parse_mountinfo("1 2 3:4 / /t rw -  tmpfs\n1 2 3:4 / /t rw - tmpfs  rw,size=1k");
  REQUIRE(found.size() == 1);
  CHECK(found[0].type == "tmpfs");
  CHECK(found[0].options == "rw,size=1k");
}

TEST_CASE("lines that are malformed are left out, and the others are not") {
  const std::string good = "1 2 3:4 / /good rw - ext4 x rw\n";
  for (const std::string bad :
       {"", "\n", "1 2\n", "1 2 3:4 / /x rw\n", "1 2 3:4 / /x rw -\n", "- - - - - -\n"}) {
    CAPTURE(bad);
    CHECK(parse_mountinfo(bad).empty());
    CHECK(parse_mountinfo(bad + good).size() == 1);
  }
}
