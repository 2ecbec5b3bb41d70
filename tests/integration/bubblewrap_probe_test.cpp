// The probe of the bubblewrap backend on this host, and with tools that are missing or do not work.
#include <doctest/doctest.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/planned.hpp"
#include "support/temporary_directory.hpp"

using namespace ccbox;
using namespace ccbox::test;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

std::string program(const temporary_directory& directory, const std::string& script) {
  const auto path = directory.write("bwrap", "#!/bin/sh\n" + script);
  REQUIRE(::chmod(path.c_str(), 0755) == 0);
  return path;
}

constexpr std::uint64_t all_it_can = CCBOX_RULE_FS_BINDS_ONLY | CCBOX_RULE_FS_READ_DENY |
                                     CCBOX_RULE_FS_WRITE_DENY | CCBOX_RULE_NET_PROXY_ONLY |
                                     CCBOX_RULE_PID_ISOLATION | CCBOX_RULE_RESOURCE_LIMITS |
                                     CCBOX_RULE_FS_NAME_DENY;

}  // namespace

TEST_CASE("on a host with bwrap and socat the probe proves it by starting an enclosure") {
  const built_plugin backend("bubblewrap");
  CHECK(backend.kind() == "native");
  for (const auto depth : {CCBOX_PROBE_QUICK, CCBOX_PROBE_FULL}) {
    const auto found = backend.probe(static_cast<ccbox_probe_depth>(depth));
    CHECK(found.status == CCBOX_OK);
    CHECK_MESSAGE(found.available, found.cause << ": " << found.hint);
    CHECK(found.enforced == all_it_can);
    CHECK(found.note == "bubblewrap — namespace isolation, no kernel boundary");
    CHECK(found.hint == "");
    CHECK(found.cause == "");
    CHECK_FALSE(found.requires_install);
  }
}

TEST_CASE("a missing bwrap or socat is named with its package, in both depths, and nothing is enforced") {
  const temporary_directory empty;
  const auto nothing = empty / "nothing";
  const auto check = [](const built_plugin::option_list& options, const std::string& command) {
    const built_plugin backend("bubblewrap", options);
    for (const auto depth : {CCBOX_PROBE_QUICK, CCBOX_PROBE_FULL}) {
      const auto found = backend.probe(static_cast<ccbox_probe_depth>(depth));
      CHECK(found.status == CCBOX_OK);
      CHECK_FALSE(found.available);
      CHECK(found.requires_install);
      CHECK(found.enforced == 0);
      CHECK(found.cause == "missing-tool");
      CHECK_MESSAGE(found.hint.ends_with(command), found.hint);
    }
  };
  check({{"bwrap", nothing}}, "sudo apt-get install bubblewrap");
  check({{"socat", nothing}}, "sudo apt-get install socat");
  check({{"bwrap", nothing}, {"socat", nothing}}, "sudo apt-get install bubblewrap socat");
}

TEST_CASE("without bwrap a plan is refused with the remedy") {
  const temporary_directory empty;
  const built_plugin backend("bubblewrap", {{"bwrap", empty / "nothing"}});
  const auto answer = backend.ask({});
  CHECK(answer.status == CCBOX_UNAVAILABLE);
  CHECK_MESSAGE(contains(answer.error, "sudo apt-get install bubblewrap"), answer.error);
  CHECK(answer.planned.argv.empty());
}

TEST_CASE("a bwrap that fails is diagnosed from what it writes") {
  const temporary_directory directory;
  const auto old = program(directory, "echo 'bwrap: Unknown option --ro-bind-fd' >&2\nexit 1\n");
  const built_plugin backend("bubblewrap", {{"bwrap", old}});
  const auto found = backend.probe(CCBOX_PROBE_FULL);
  CHECK(found.status == CCBOX_OK);
  CHECK_FALSE(found.available);
  CHECK_FALSE(found.requires_install);
  CHECK(found.enforced == 0);
  CHECK(found.cause == "bwrap-too-old");
  // A look alone cannot know.
  CHECK(backend.probe(CCBOX_PROBE_QUICK).available);
}

TEST_CASE("a bwrap that does not end is ended within the probe's limit, with what it started") {
  const temporary_directory directory;
  const auto slow =
      program(directory, "echo $$ > " + directory.path() + "/pid\nsleep 600 &\nexec sleep 600\n");
  const built_plugin backend("bubblewrap", {{"bwrap", slow}});
  const auto found = backend.probe(CCBOX_PROBE_FULL);
  CHECK_FALSE(found.available);
  CHECK(found.cause == "timed-out");
  std::string pid;
  std::ifstream(directory / "pid") >> pid;
  REQUIRE(pid != "");
  CHECK_FALSE(std::filesystem::exists("/proc/" + pid));
}

TEST_CASE("a bwrap that writes without end is no trouble") {
  const temporary_directory directory;
  const built_plugin backend(
      "bubblewrap",
      {{"bwrap", program(directory, "head -c 10000000 /dev/zero >&2\necho last >&2\nexit 3\n")}});
  const auto found = backend.probe(CCBOX_PROBE_FULL);
  CHECK(found.cause == "trial-failed");
  CHECK_MESSAGE(contains(found.hint, "status 3"), found.hint);
}

TEST_CASE("options that are unknown or no absolute paths are refused by name") {
  const auto refusal = [](const built_plugin::option_list& options) {
    try {
      built_plugin backend("bubblewrap", options);
    } catch (const std::runtime_error& e) {
      return std::string(e.what());
    }
    return std::string("not refused");
  };
  CHECK(contains(refusal({{"bwarp", "/usr/bin/bwrap"}}), "bwarp"));
  CHECK(contains(refusal({{"bwrap", "bin/bwrap"}}), "'bwrap'"));
  CHECK(contains(refusal({{"socat", "/usr/../bin/socat"}}), "'socat'"));
}
