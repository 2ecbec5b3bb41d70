// From `cmake --install` over `ccbox plugin new` to a third party's backend that ccbox loads: the way of a
// plugin author, with nothing but what is installed.
#include "plugin_template.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "exported_symbols.hpp"
#include "support/run_command.hpp"
#include "support/temporary_directory.hpp"

using namespace ccbox;
namespace fs = std::filesystem;

namespace {

constexpr test::milliseconds build_limit{240'000};

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// `cmake --install` of this build, but for the list of files that it writes into the build directory: whoever
// runs the tests need not be who built.
test::finished install(const test::temporary_directory& scratch, const std::string& prefix,
                       const std::vector<std::string>& environment = {}) {
  auto script = test::read_file(CCBOX_TEST_BINARY_DIR "/cmake_install.cmake");
  const std::string manifest = CCBOX_TEST_BINARY_DIR "/${CMAKE_INSTALL_MANIFEST}";
  REQUIRE(script.find(manifest) != std::string::npos);
  replace_all(script, manifest, scratch.path() + "/${CMAKE_INSTALL_MANIFEST}");
  const auto path = scratch.write("install.cmake", script);
  test::run_options how;
  how.extra_env = environment;
  how.limit = build_limit;
  // A umask that would let the group write: the loader refuses plugins that others may replace.
  return test::run(
      {"/bin/sh", "-c", "umask 002; exec cmake -DCMAKE_INSTALL_PREFIX=\"$1\" -P \"$2\"", "sh", prefix, path},
      how);
}

test::finished must(const std::vector<std::string>& argv, const std::string& cwd = {}) {
  test::run_options how;
  how.cwd = cwd;
  how.limit = build_limit;
  const auto done = test::run(argv, how);
  INFO(argv[0] << " " << argv[1] << "\n" << done.out << done.err);
  REQUIRE(done.code == 0);
  return done;
}

std::vector<std::string> files_below(const std::string& directory) {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(directory))
    if (!entry.is_directory()) out.push_back(fs::relative(entry.path(), directory));
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

TEST_CASE("installing puts every part where ccbox looks for it, and nothing that others may change") {
  const test::temporary_directory scratch;
  const auto prefix = scratch / "prefix";
  const auto done = install(scratch, prefix);
  REQUIRE_MESSAGE(done.code == 0, done.err);
  const auto files = files_below(prefix);
  for (const std::string file :
       {"bin/ccbox", "lib/ccbox/ccbox-init", "lib/ccbox/plugins/bubblewrap.so", "lib/ccbox/plugins/none.so",
        "etc/ccbox/plugins.yaml", "etc/ccbox/policy.yaml", "include/ccbox/plugin.h",
        "include/ccbox/plugin.hpp", "lib/cmake/ccbox/ccboxConfig.cmake",
        "lib/cmake/ccbox/ccboxConfigVersion.cmake", "lib/cmake/ccbox/ccboxTargets.cmake",
        "lib/cmake/ccbox/ccbox_add_plugin.cmake", "lib/cmake/ccbox/exports.map"})
    CHECK_MESSAGE(std::count(files.begin(), files.end(), file) == 1, file);
  for (const auto& file : files) {
    CHECK_MESSAGE(file.find("example") == std::string::npos, file);
    CHECK_MESSAGE(file.find("broken") == std::string::npos, file);
  }
  for (const auto& entry : fs::recursive_directory_iterator(prefix)) {
    struct stat facts {};
    REQUIRE(::lstat(entry.path().c_str(), &facts) == 0);
    CHECK_MESSAGE((facts.st_mode & (S_IWGRP | S_IWOTH)) == 0, entry.path());
  }
}

TEST_CASE("installing again keeps configuration that was edited and puts the shipped one beside it") {
  const test::temporary_directory scratch;
  const auto prefix = scratch / "prefix";
  REQUIRE(install(scratch, prefix).code == 0);
  const auto shipped = test::read_file(prefix + "/etc/ccbox/plugins.yaml");
  scratch.write("prefix/etc/ccbox/plugins.yaml", "plugins: []\n");
  const auto again = install(scratch, prefix);
  REQUIRE(again.code == 0);
  CHECK(test::read_file(prefix + "/etc/ccbox/plugins.yaml") == "plugins: []\n");
  CHECK(test::read_file(prefix + "/etc/ccbox/plugins.yaml.new") == shipped);
  CHECK(again.out.find("Keeping your") != std::string::npos);
  CHECK_FALSE(test::exists(prefix + "/etc/ccbox/policy.yaml.new"));
}

TEST_CASE("under the prefix /usr the configuration goes to /etc/ccbox, in a staging directory too") {
  const test::temporary_directory scratch;
  const auto staging = scratch / "staging";
  REQUIRE(install(scratch, "/usr", {"DESTDIR=" + staging}).code == 0);
  CHECK(test::exists(staging + "/etc/ccbox/plugins.yaml"));
  CHECK(test::exists(staging + "/usr/lib/ccbox/ccbox-init"));
  CHECK_FALSE(test::exists(staging + "/usr/etc"));
}

TEST_CASE(
    "a new plugin builds against the installed package, passes its tests, and loads by dropping it in") {
  const test::temporary_directory scratch;
  const auto prefix = scratch / "prefix", work = scratch / "work", project = work + "/mine";
  const auto command = prefix + "/bin/ccbox";
  REQUIRE(install(scratch, prefix).code == 0);
  fs::create_directory(work);

  must({command, "plugin", "new", "mine"}, work);
  // The three commands of its README.
  must({"/usr/bin/env", "cmake", "-S", ".", "-B", "build", "-DCMAKE_PREFIX_PATH=" + prefix}, project);
  must({"/usr/bin/env", "cmake", "--build", "build"}, project);
  const auto tests = must({"/usr/bin/env", "ctest", "--test-dir", "build", "--output-on-failure"}, project);
  CHECK(tests.out.find("100% tests passed, 0 tests failed out of 2") != std::string::npos);

  const auto built = project + "/build/plugins/mine.so";
  const auto symbols = exported_symbols(test::read_file(built), built);
  REQUIRE(symbols.has_value());
  CHECK(*symbols == std::vector<std::string>{"ccbox_plugin_v1"});

  // Drop it in.
  const auto drop = scratch / "plugins.d";
  must({"/usr/bin/install", "-D", "-m", "644", built, drop + "/mine.so"});
  fs::permissions(drop, fs::perms::owner_all);
  const auto manifest = prefix + "/etc/ccbox/plugins.yaml";
  scratch.write("prefix/etc/ccbox/plugins.yaml",
                test::read_file(manifest) + "\ndirectories:\n  - " + drop + "\n");
  const auto listed = must({command, "plugins", "--json"});
  CHECK(listed.out.find("\"mine\"") != std::string::npos);

  // It claims nothing that a launch relies on, so nothing runs with it.
  const auto refused = test::run({command, "run", "--backend", "mine", "--", "/bin/true"});
  CHECK(refused.code == 125);
  CHECK(refused.err.find("fs_binds_only") != std::string::npos);
  scratch.write("alone.yaml", "plugins:\n  - path: " + drop + "/mine.so\n");
  CHECK(test::run({command, "probe", "--plugins", scratch / "alone.yaml"}).code == 1);
  const auto examined = test::run({command, "doctor", "--plugins", scratch / "alone.yaml"});
  CHECK(examined.out.find("no backend that encloses commands works") != std::string::npos);

  // Take it out.
  fs::remove(drop + "/mine.so");
  CHECK(must({command, "plugins", "--json"}).out.find("\"mine\"") == std::string::npos);
}

TEST_CASE("the installed package may be moved elsewhere") {
  const test::temporary_directory scratch;
  REQUIRE(install(scratch, scratch / "first").code == 0);
  fs::rename(scratch / "first", scratch / "second");
  scratch.write(
      "user/CMakeLists.txt",
      "cmake_minimum_required(VERSION 3.25)\nproject(user C)\nfind_package(ccbox 0.1 REQUIRED)\n"
      "ccbox_add_plugin(user user.c)\nif(NOT TARGET ccbox::command)\n  message(FATAL_ERROR none)\nendif()\n");
  scratch.write(
      "user/user.c",
      "#include <ccbox/plugin.h>\nconst ccbox_plugin_descriptor *ccbox_plugin_v1(void) { return 0; }\n");
  must({"/usr/bin/env", "cmake", "-S", ".", "-B", "build", "-DCMAKE_PREFIX_PATH=" + scratch / "second"},
       scratch / "user");
  must({"/usr/bin/env", "cmake", "--build", "build"}, scratch / "user");
  CHECK(test::exists(scratch / "user/build/plugins/user.so"));
}

TEST_CASE("a plugin project of every odd name builds") {
  const test::temporary_directory scratch;
  const auto prefix = scratch / "prefix";
  REQUIRE(install(scratch, prefix).code == 0);
  for (const std::string name : {"new", "a--_b-"}) {
    CAPTURE(name);
    REQUIRE(write_plugin_project(name, scratch / name).has_value());
    must({"/usr/bin/env", "cmake", "-S", ".", "-B", "build", "-DCMAKE_PREFIX_PATH=" + prefix},
         scratch / name);
    must({"/usr/bin/env", "cmake", "--build", "build"}, scratch / name);
    CHECK(test::exists(scratch / (name + "/build/plugins/" + name + ".so")));
  }
}
