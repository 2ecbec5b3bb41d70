#include "plugin_template.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "support/result_printing.hpp"
#include "support/temporary_directory.hpp"

using namespace ccbox;

namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

}  // namespace

TEST_CASE("a new plugin project is complete and carries its name everywhere") {
  const test::temporary_directory directory;
  REQUIRE(write_plugin_project("my-vm2", directory / "my-vm2").has_value());
  for (const std::string file :
       {"CMakeLists.txt", "src/my-vm2.cpp", "tests/plan_test.cpp", "README.md", ".gitignore"}) {
    const auto text = read_file(directory / ("my-vm2/" + file));
    CAPTURE(file);
    CHECK_FALSE(text.empty());
    CHECK(text.find("@NAME@") == std::string::npos);
    CHECK(text.find("@CLASS@") == std::string::npos);
  }
  CHECK(read_file(directory / "my-vm2/CMakeLists.txt").find("ccbox_add_plugin(my-vm2 src/my-vm2.cpp)") !=
        std::string::npos);
  CHECK(read_file(directory / "my-vm2/src/my-vm2.cpp")
            .find("CCBOX_PLUGIN(my_vm2_backend, \"my-vm2\", \"0.1.0\")") != std::string::npos);
}

TEST_CASE("names that are C++ keywords or hard to spell still give a class that compiles") {
  const test::temporary_directory directory;
  for (const auto& [name, type] :
       {std::pair("new", "class new_backend :"), std::pair("a--_b-", "class a_b_backend :")}) {
    REQUIRE(write_plugin_project(name, directory / name).has_value());
    const auto source = read_file(directory / (std::string(name) + "/src/" + name + ".cpp"));
    CHECK_MESSAGE(source.find(type) != std::string::npos, name);
  }
}

TEST_CASE("names that are no plugin names are refused before anything is made") {
  const test::temporary_directory directory;
  for (const std::string name : {"", "My", "1st", "-x", "_x", "a b", "a/b", "../a", "a.b", "b\xc3\xbc", "a\n",
                                 "$(id)", "abcdefghijklmnopqrstuvwxyz0123456"}) {
    CAPTURE(name);
    const auto refused = write_plugin_project(name, directory / "project");
    REQUIRE(refused.has_error());
    CHECK(refused.error().code == error_code::invalid_argument);
    CHECK_FALSE(std::filesystem::exists(directory / "project"));
  }
}

TEST_CASE("names of kinds, of shipped plugins and of CMake's own targets are taken") {
  const test::temporary_directory directory;
  for (const std::string name : {"ccbox", "native", "none", "microvm", "bubblewrap", "seatbelt", "egress",
                                 "violations", "test", "all", "install", "clean", "plan_test"}) {
    CAPTURE(name);
    const auto refused = write_plugin_project(name, directory / "project");
    REQUIRE(refused.has_error());
    CHECK(refused.error().code == error_code::conflict);
  }
}

TEST_CASE("whatever has the project's name already is left as it is") {
  const test::temporary_directory directory;
  directory.write("file", "mine");
  std::filesystem::create_directory(directory / "directory");
  std::filesystem::create_symlink(directory / "nowhere", directory / "link");
  for (const std::string existing : {"file", "directory", "link"}) {
    CAPTURE(existing);
    const auto refused = write_plugin_project("mine", directory / existing);
    REQUIRE(refused.has_error());
    CHECK(refused.error().code == error_code::conflict);
  }
  CHECK(read_file(directory / "file") == "mine");
  CHECK(std::filesystem::is_empty(directory / "directory"));
  CHECK_FALSE(std::filesystem::exists(directory / "nowhere"));
}

TEST_CASE("a directory that is not there to make the project in is named") {
  const test::temporary_directory directory;
  const auto refused = write_plugin_project("mine", directory / "missing/mine");
  REQUIRE(refused.has_error());
  CHECK(refused.error().code == error_code::not_found);
  CHECK(refused.error().what.find("missing/mine") != std::string::npos);
}

TEST_CASE("a project that cannot be written to the end is taken away again") {
  const test::temporary_directory directory;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {64, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const auto refused = write_plugin_project("mine", directory / "mine");
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  REQUIRE(refused.has_error());
  CHECK(refused.error().code == error_code::too_large);
  CHECK_FALSE(std::filesystem::exists(directory / "mine"));
}
