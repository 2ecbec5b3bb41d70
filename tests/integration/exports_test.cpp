#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "exported_symbols.hpp"
#include "support/result_printing.hpp"

using namespace ccbox;
namespace fs = std::filesystem;

namespace {

std::vector<fs::path> built_plugins() {
  std::vector<fs::path> found;
  for (const auto* directory : {"/plugins", "/contract_plugins"})
    for (const auto& entry : fs::directory_iterator(std::string(CCBOX_TEST_BINARY_DIR) + directory))
      if (entry.path().extension() == ".so") found.push_back(entry.path());
  return found;
}

// The dynamic, defined symbols as binutils sees them: not our own reader's opinion of itself.
std::vector<std::string> symbols_of_nm(const fs::path& file) {
  FILE* pipe =
      ::popen(("nm --dynamic --defined-only --format=just-symbols '" + file.string() + "'").c_str(), "re");
  REQUIRE(pipe);
  std::string text;
  char buffer[4096];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    text.append(buffer, n);
  REQUIRE(::pclose(pipe) == 0);
  std::vector<std::string> names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    names.push_back(line);
  return names;
}

}  // namespace

TEST_CASE("every built plugin exports exactly one dynamic symbol") {
  const auto plugins = built_plugins();
  for (const auto* expected : {"bubblewrap.so", "egress.so", "none.so", "violations.so"})
    CHECK(
        std::any_of(plugins.begin(), plugins.end(), [&](const auto& p) { return p.filename() == expected; }));
  for (const auto& plugin : plugins) {
    CAPTURE(plugin.string());
    const std::vector<std::string> only = {"ccbox_plugin_v1"};
    CHECK(symbols_of_nm(plugin) == only);
    std::ifstream in(plugin, std::ios::binary);
    std::ostringstream bytes;
    bytes << in.rdbuf();
    const auto symbols = exported_symbols(bytes.str(), plugin.filename().string());
    REQUIRE(symbols);
    CHECK(*symbols == only);
  }
}
