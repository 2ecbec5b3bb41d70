#include <doctest/doctest.h>

#include <filesystem>

#include "support/policy_bench.hpp"

using namespace ccbox;
using namespace ccbox::test;
namespace fs = std::filesystem;

namespace {

environment environment_of(const policy_bench& bench) {
  return command_environment(bench.compile(), bench.host, bench.config);
}

std::string path_for(policy_bench& bench, const std::string& path) {
  bench.host.environment["PATH"] = path;
  return environment_of(bench).at("PATH");
}

constexpr auto default_path = "/usr/local/bin:/usr/bin:/bin";

}  // namespace

TEST_CASE("a command gets the session's own places, whatever the caller's were") {
  policy_bench bench;
  bench.host.environment = {{"HOME", "/root"},        {"TMPDIR", "/somewhere"}, {"SHELL", "/bin/evil"},
                            {"XDG_CACHE_HOME", "/x"}, {"LANG", "C.UTF-8"},      {"LD_PRELOAD", "/x.so"}};
  const auto p = bench.compile();
  const auto env = command_environment(p, bench.host, bench.config);
  CHECK(env == environment{{"GIT_TEMPLATE_DIR", ""},
                           {"HOME", p.home},
                           {"LANG", "C.UTF-8"},
                           {"PATH", default_path},
                           {"SHELL", "/bin/bash"},
                           {"TMPDIR", p.tmpdir},
                           {"XDG_CACHE_HOME", p.home + "/.cache"},
                           {"XDG_CONFIG_HOME", p.home + "/.config"},
                           {"XDG_DATA_HOME", p.home + "/.local/share"},
                           {"XDG_STATE_HOME", p.home + "/.local/state"}});
}

TEST_CASE("without name rules git has its own templates") {
  policy_bench bench;
  auto p = bench.compile();
  p.required &= ~CCBOX_RULE_FS_NAME_DENY;
  CHECK_FALSE(command_environment(p, bench.host, bench.config).contains("GIT_TEMPLATE_DIR"));
}

TEST_CASE("the path is the default where the caller has none") {
  policy_bench bench;
  CHECK(environment_of(bench).at("PATH") == default_path);
  for (const auto path : {"", ":", ".", "bin:./x", "::relative"})
    CHECK(path_for(bench, path) == default_path);
}

TEST_CASE("the caller's order of system directories is kept, each once") {
  policy_bench bench;
  CHECK(path_for(bench, "/usr/sbin:/usr/bin/:/usr/bin:/bin") == "/usr/sbin:/usr/bin:/bin:/usr/local/bin");
}

TEST_CASE("directories that the run could write to, or that it does not see, are no place for programs") {
  policy_bench bench;
  bench.write("bin/tool");
  bench.dir.write("tools/bin/tool", "x");
  bench.dir.write("hidden/bin/tool", "x");
  fs::create_directory_symlink(bench.work + "/bin", bench.dir / "tools/link");
  bench.mount(bench.dir / "tools", true);
  const std::string tools = bench.dir / "tools/bin";
  CHECK(path_for(bench, bench.work + "/bin:" + tools + ":" + (bench.dir / "hidden/bin") + ":" +
                            (bench.dir / "tools/link") + ":/tmp:/proc/self/cwd:/dev/shm:/usr/../tmp:" +
                            bench.home + "/.local/bin") == tools + ":" + default_path);
}

TEST_CASE("a directory of programs in a work directory that is read-only counts") {
  policy_bench bench;
  bench.write("bin/tool");
  bench.spec.mode = sandbox_mode::review;
  CHECK(path_for(bench, bench.work + "/bin") == bench.work + "/bin:" + default_path);
}

TEST_CASE("a directory of programs that is protected inside a writable mount counts") {
  policy_bench bench;
  bench.write("bin/tool");
  bench.spec.protected_paths = {bench.work + "/bin"};
  CHECK(path_for(bench, bench.work + "/bin") == bench.work + "/bin:" + default_path);
}

TEST_CASE("what the host set to inject is gone, and what is set afterwards stays") {
  policy_bench bench;
  bench.host.environment = {{"GIT_SSH_COMMAND", "evil"}, {"HTTPS_PROXY", "http://evil"}};
  auto env = environment_of(bench);
  CHECK_FALSE(env.contains("GIT_SSH_COMMAND"));
  CHECK_FALSE(env.contains("HTTPS_PROXY"));
  env["GIT_SSH_COMMAND"] = "ours";
  CHECK(env.at("GIT_SSH_COMMAND") == "ours");
}
