// The contract suite on every plugin of this build: ours in <build>/plugins, the examples of third parties in
// <build>/contract_plugins.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "contract/contract_run.hpp"

using namespace ccbox;

namespace {

std::vector<std::string> plugins_in(const std::string& directory) {
  std::vector<std::string> out;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(directory, missing))
    if (entry.path().extension() == ".so") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

TEST_CASE("every plugin of this build keeps the contract") {
  const auto plugins = plugins_in(CCBOX_TEST_BINARY_DIR "/plugins");
  for (const std::string ours : {"bubblewrap.so", "egress.so", "none.so", "violations.so"})
    CHECK(std::count(plugins.begin(), plugins.end(), CCBOX_TEST_BINARY_DIR "/plugins/" + ours) == 1);
  for (const auto& plugin : plugins) {
    CAPTURE(plugin);
    CHECK(test::broken_promises(plugin) == "");
  }
}

TEST_CASE("the example backend in C keeps the contract") {
  CHECK(test::broken_promises(CCBOX_TEST_BINARY_DIR "/contract_plugins/example_nice.so") == "");
}

TEST_CASE("the example backend in C keeps the contract with its option set") {
  CHECK(test::broken_promises(CCBOX_TEST_BINARY_DIR "/contract_plugins/example_nice.so",
                              {{"niceness", "19"}}) == "");
}

TEST_CASE("the example backend in Rust keeps the contract") {
  CHECK(test::broken_promises(CCBOX_TEST_BINARY_DIR "/contract_plugins/example_prlimit.so") == "");
}

TEST_CASE("the example backend in Rust keeps the contract with its option set") {
  CHECK(test::broken_promises(CCBOX_TEST_BINARY_DIR "/contract_plugins/example_prlimit.so",
                              {{"open_files", "64"}}) == "");
}
