#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/temporary_directory.hpp"

// Who may include whom, as docs/design.md has it. CMake's include paths stop most wrong includes; this stops
// the rest (a relative path, a header of a library that happens to be installed) and says which rule was
// broken.
namespace {

namespace fs = std::filesystem;

struct include_line {
  std::string file;  // from the tree's root
  int line = 0;
  std::string name;
  bool quoted = false;
};

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// Sources that a program writes are text to it, not includes of its own.
std::string without_raw_strings(std::string text) {
  for (std::size_t at = 0; (at = text.find("R\"", at)) != std::string::npos;) {
    const auto open = text.find('(', at);
    if (open == std::string::npos) break;
    const auto closing = ")" + text.substr(at + 2, open - at - 2) + "\"";
    const auto end = text.find(closing, open);
    if (end == std::string::npos) break;
    for (auto i = at; i < end; ++i)
      if (text[i] != '\n') text[i] = ' ';
    at = end;
  }
  return text;
}

std::vector<include_line> includes_of(const fs::path& tree, const fs::path& file) {
  static const std::regex pattern(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])");
  std::vector<include_line> found;
  std::istringstream lines(without_raw_strings(text_of(file)));
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::smatch match;
    if (std::regex_search(line, match, pattern))
      found.push_back({fs::relative(file, tree).string(), number, match[2], match[1] == "\""});
  }
  return found;
}

bool starts_with_any(const std::string& name, std::initializer_list<const char*> prefixes) {
  for (const auto* prefix : prefixes)
    if (name.starts_with(prefix)) return true;
  return false;
}

// A header of the language or of the operating system.
bool is_system(const std::string& name) {
  static const std::set<std::string> libraries = {"seccomp.h", "zlib.h", "fmt.h"};
  if (libraries.contains(name)) return false;
  return name.find('/') == std::string::npos ||
         starts_with_any(name, {"sys/", "linux/", "netinet/", "arpa/", "net/", "asm/"});
}

// A library that the kernel uses has one door; everybody else sees what the kernel made of it.
bool is_door(const include_line& i) {
  static const std::multimap<std::string, std::string> doors = {{"spdlog/", "kernel/log.cpp"},
                                                                {"yaml-cpp/", "kernel/yaml_document.cpp"},
                                                                {"boost/dll", "kernel/plugin_loader.cpp"},
                                                                {"CLI/", "cli/"},
                                                                {"CLI/", "server/options.cpp"},
                                                                {"boost/beast", "server/connection.cpp"}};
  bool has_doors = false;
  for (const auto& [library, door] : doors) {
    if (!i.name.starts_with(library)) continue;
    if (i.file.starts_with(door)) return true;
    has_doors = true;
  }
  return !has_doors;
}

// What is compiled into both the kernel and init lives with init, where the stricter rules hold.
bool shared_with_init(const std::string& name) {
  return name == "init/protocol.hpp" || name == "init/cgroup_removal.hpp";
}

std::string layer_of(const std::string& file) {
  for (const auto* directory : {"kernel/abi", "kernel/init", "kernel", "cli", "server"})
    if (file.starts_with(std::string(directory) + "/")) return directory;
  // plugins/NAME: each plugin is a layer.
  const auto end = file.find('/', std::string("plugins/").size());
  return end == std::string::npos ? "plugins" : file.substr(0, end);
}

bool allowed(const fs::path& tree, const include_line& i) {
  const auto layer = layer_of(i.file);
  const auto exists = [&](const std::string& directory) {
    return fs::is_regular_file(tree / directory / i.name);
  };
  // The one header that init shares with the kernel beside the protocol: inline, and of the system's headers
  // alone.
  if (layer == "kernel/init" && i.quoted && i.name == "../unique_fd.hpp") return true;
  if (i.name.find("..") != std::string::npos || i.name.starts_with('/') || !is_door(i)) return false;
  if (!i.quoted) {
    // Our own headers are quoted; an angle bracket must not be a way around the rules below.
    if (exists("kernel") || exists("kernel/abi") || exists("plugins") || exists("cli")) return false;
    if (layer == "kernel/abi")
      return i.name.find('/') == std::string::npos && is_system(i.name) &&
             (i.file.ends_with(".hpp") ? !i.name.ends_with(".h")
                                       : i.name == "stddef.h" || i.name == "stdint.h");
    if (layer == "kernel/init") return is_system(i.name);
    if (layer == "kernel")
      return is_system(i.name) || i.name == "seccomp.h" ||
             starts_with_any(i.name, {"boost/", "spdlog/", "yaml-cpp/", "openssl/"});
    if (layer == "cli" || layer == "server")
      return is_system(i.name) || starts_with_any(i.name, {"boost/", "CLI/", "openssl/"});
    return true;  // a plugin's private libraries are its own affair
  }
  if (layer == "kernel/abi") return i.name == "ccbox/plugin.h";
  if (layer == "kernel/init") return exists(layer) || i.name == "ccbox/floor.hpp";
  if (layer == "kernel")
    return i.name == "ccbox/plugin.h" || i.name == "ccbox/glob.hpp" || shared_with_init(i.name) ||
           (exists("kernel") && i.name.find('/') == std::string::npos);
  if (layer == "cli" || layer == "server")
    return exists(layer) || i.name == "ccbox/plugin.h" ||
           (exists("kernel") && i.name.find('/') == std::string::npos);
  return (i.name.starts_with("ccbox/") && exists("kernel/abi")) || exists(layer);
}

struct survey {
  std::vector<std::string> wrong;  // "kernel/x.cpp:3: <CLI/CLI.hpp>"
  int includes = 0;
};

survey survey_of(const fs::path& tree) {
  survey out;
  for (const auto* top : {"kernel", "plugins", "cli", "server"}) {
    if (!fs::exists(tree / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(tree / top)) {
      const auto extension = entry.path().extension();
      if (extension != ".h" && extension != ".hpp" && extension != ".c" && extension != ".cpp") continue;
      for (const auto& i : includes_of(tree, entry.path())) {
        ++out.includes;
        if (!allowed(tree, i)) out.wrong.push_back(i.file + ":" + std::to_string(i.line) + ": " + i.name);
      }
    }
  }
  return out;
}

// What the survey says of one line in one file of a small tree.
bool accepts(const std::string& file, const std::string& line) {
  const ccbox::test::temporary_directory tree;
  for (const auto* known : {"kernel/process.hpp", "kernel/abi/ccbox/plugin.h", "kernel/abi/ccbox/plugin.hpp",
                            "kernel/init/protocol.hpp", "kernel/init/reaper.hpp", "plugins/none/view.hpp",
                            "plugins/other/view2.hpp", "cli/options.hpp", "tests/support/x.hpp"})
    tree.write(known, "");
  tree.write(file, "// comment\n" + line + "\n");
  const auto found = survey_of(tree.path());
  CHECK(found.includes == 1);
  return found.wrong.empty();
}

}  // namespace

TEST_CASE("no file of this tree includes what its layer may not") {
  const auto found = survey_of(CCBOX_TEST_SOURCE_DIR);
  for (const auto& wrong : found.wrong)
    FAIL_CHECK(wrong);
  CHECK(found.includes > 500);
}

TEST_CASE("the ABI headers use the standard headers of their language and nothing else") {
  CHECK(accepts("kernel/abi/ccbox/plugin.h", "#include <stdint.h>"));
  CHECK_FALSE(accepts("kernel/abi/ccbox/plugin.h", "#include <unistd.h>"));
  CHECK(accepts("kernel/abi/ccbox/plugin.hpp", "#include <vector>"));
  CHECK(accepts("kernel/abi/ccbox/plugin.hpp", "#include \"ccbox/plugin.h\""));
  CHECK_FALSE(accepts("kernel/abi/ccbox/plugin.hpp", "#include <boost/json.hpp>"));
  CHECK_FALSE(accepts("kernel/abi/ccbox/plugin.hpp", "#include \"process.hpp\""));
}

TEST_CASE("the kernel knows no plugin, no command line and no test") {
  CHECK(accepts("kernel/a.cpp", "#include \"process.hpp\""));
  CHECK(accepts("kernel/a.cpp", "#include \"init/protocol.hpp\""));
  CHECK(accepts("kernel/a.cpp", "#include <boost/asio/post.hpp>"));
  for (const auto* line :
       {"#include \"plugins/none/view.hpp\"", "#include \"../plugins/none/view.hpp\"",
        "#include \"cli/options.hpp\"", "#include \"tests/support/x.hpp\"", "#include <CLI/CLI.hpp>",
        "#include <doctest/doctest.h>", "#include \"init/reaper.hpp\"", "#include \"ccbox/plugin.hpp\"",
        "#include <curl/curl.h>", "#include <process.hpp>", "#include \"nowhere.hpp\"",
        "#  include <zlib.h>"})
    CHECK_MESSAGE(!accepts("kernel/a.cpp", line), line);
}

TEST_CASE("a library with one door is used there only") {
  CHECK(accepts("kernel/log.cpp", "#include <spdlog/spdlog.h>"));
  CHECK_FALSE(accepts("kernel/log.hpp", "#include <spdlog/spdlog.h>"));
  CHECK(accepts("kernel/yaml_document.cpp", "#include <yaml-cpp/parser.h>"));
  CHECK_FALSE(accepts("kernel/manifest.cpp", "#include <yaml-cpp/yaml.h>"));
  CHECK(accepts("kernel/plugin_loader.cpp", "#include <boost/dll/shared_library.hpp>"));
  CHECK_FALSE(accepts("cli/a.cpp", "#include <boost/dll/import.hpp>"));
}

TEST_CASE("ccbox-init uses its own headers and the system's, and no library") {
  CHECK(accepts("kernel/init/a.cpp", "#include \"protocol.hpp\""));
  CHECK(accepts("kernel/init/a.cpp", "#include <sys/wait.h>"));
  CHECK(accepts("kernel/init/a.cpp", "#include \"../unique_fd.hpp\""));
  for (const auto* line :
       {"#include \"process.hpp\"", "#include \"../process.hpp\"", "#include <boost/system/result.hpp>",
        "#include <seccomp.h>", "#include \"ccbox/plugin.h\""})
    CHECK_MESSAGE(!accepts("kernel/init/a.cpp", line), line);
}

TEST_CASE("a plugin sees the ABI, itself and its private libraries, never the kernel or another plugin") {
  CHECK(accepts("plugins/none/a.cpp", "#include \"ccbox/plugin.hpp\""));
  CHECK(accepts("plugins/none/a.cpp", "#include \"view.hpp\""));
  CHECK(accepts("plugins/none/a.cpp", "#include <boost/asio/post.hpp>"));
  for (const auto* line :
       {"#include \"process.hpp\"", "#include \"kernel/process.hpp\"", "#include <process.hpp>",
        "#include \"../other/view2.hpp\"", "#include \"view2.hpp\"", "#include \"init/protocol.hpp\""})
    CHECK_MESSAGE(!accepts("plugins/none/a.cpp", line), line);
}

TEST_CASE("the command line sees the kernel, and no plugin") {
  CHECK(accepts("cli/a.cpp", "#include \"process.hpp\""));
  CHECK(accepts("cli/a.cpp", "#include <CLI/CLI.hpp>"));
  for (const auto* line : {"#include \"plugins/none/view.hpp\"", "#include \"init/reaper.hpp\"",
                           "#include <spdlog/spdlog.h>", "#include \"tests/support/x.hpp\""})
    CHECK_MESSAGE(!accepts("cli/a.cpp", line), line);
}

TEST_CASE("a source that the command line writes for somebody else is not its own include") {
  const ccbox::test::temporary_directory tree;
  tree.write("cli/a.cpp",
             "const char* text = R\"x(\n#include <doctest/doctest.h>\n)x\";\n#include <nowhere/x.h>\n");
  const auto found = survey_of(tree.path());
  CHECK(found.wrong == std::vector<std::string>{"cli/a.cpp:4: nowhere/x.h"});
}
