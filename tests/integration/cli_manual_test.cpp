// The manual page and the completion know every option that the program knows, and no other.
#include <algorithm>
#include <cctype>
#include <set>

#include "cli_support.hpp"

using namespace ccbox::test;

namespace {

// Words that begin with `--` and a letter.
std::set<std::string> long_options(const std::string& text) {
  std::set<std::string> found;
  for (auto at = text.find("--"); at != std::string::npos; at = text.find("--", at + 2)) {
    auto end = at + 2;
    while (end < text.size() && (std::islower(static_cast<unsigned char>(text[end])) || text[end] == '-'))
      ++end;
    const bool whole_word =
        at == 0 || (text[at - 1] != '-' && !std::isalnum(static_cast<unsigned char>(text[at - 1])));
    if (end > at + 3 && whole_word) found.insert(text.substr(at, end - at));
  }
  return found;
}

std::string unescaped(std::string text) {
  std::string out;
  std::copy_if(text.begin(), text.end(), std::back_inserter(out), [](char c) { return c != '\\'; });
  return out;
}

const std::vector<arguments> commands{{"run"},         {"wrap"},          {"explain"},       {"check"},
                                      {"probe"},       {"plugins"},       {"doctor"},        {"proxy"},
                                      {"net-connect"}, {"plugin", "new"}, {"plugin", "test"}};

std::set<std::string> declared_options() {
  std::set<std::string> all;
  for (const arguments& command : commands) {
    const auto help = run(arguments{ccbox_program()} + command + arguments{"--help"});
    REQUIRE(help.code == 0);
    all.merge(long_options(help.out));
  }
  return all;
}

}  // namespace

TEST_CASE("every option of --help is in the manual, and the manual invents none") {
  const std::string page = read_file(CCBOX_TEST_SOURCE_DIR "/docs/ccbox.1");
  const auto described = long_options(unescaped(page));
  for (const std::string& option : declared_options()) {
    CAPTURE(option);
    CHECK(described.count(option) == 1);
  }
  auto known = declared_options();
  for (const std::string& option : described) {
    CAPTURE(option);
    CHECK(known.count(option) == 1);
  }
}

TEST_CASE("every command of help is in the manual") {
  const std::string page = unescaped(read_file(CCBOX_TEST_SOURCE_DIR "/docs/ccbox.1"));
  for (const arguments& command : commands) {
    std::string name;
    for (const std::string& word : command)
      name += (name.empty() ? "" : " ") + word;
    CAPTURE(name);
    CHECK(contains(run({ccbox_program(), "help"}).out, name));
    CHECK(contains(page, "\n.B " + name));
  }
}

TEST_CASE("the manual has no mistakes of form") {
  const auto result = run({"man", "--warnings", "-l", "/dev/stdin"}, [] {
    run_options options;
    options.input = read_file(CCBOX_TEST_SOURCE_DIR "/docs/ccbox.1");
    options.extra_env = {"MANROFFOPT=-ww", "LC_ALL=C.UTF-8", "MANWIDTH=100", "MANPAGER=cat"};
    return options;
  }());
  CHECK(result.code == 0);
  CHECK(result.err == "");
  CHECK(contains(result.out, "EXIT STATUS"));
}

TEST_CASE("the completion offers every option of a command") {
  const std::string script = CCBOX_TEST_SOURCE_DIR "/cli/completions/ccbox.bash";
  for (const arguments& command : commands) {
    std::string line = "ccbox";
    for (const std::string& word : command)
      line += " " + word;
    CAPTURE(line);
    const std::string position = std::to_string(command.size() + 1);
    const auto offered =
        run({"bash", "-c",
             "compopt() { :; }; source '" + script + "'; COMP_WORDS=(" + line +
                 " --); COMP_CWORD=" + position + "; _ccbox; printf '%s\\n' \"${COMPREPLY[@]}\""});
    const auto options = long_options(offered.out);
    const auto help = run(arguments{ccbox_program()} + command + arguments{"--help"});
    for (const std::string& option : long_options(help.out.substr(help.out.find("usage:")))) {
      CAPTURE(option);
      CHECK(options.count(option) == 1);
    }
  }
}

TEST_CASE("behind the command's first word the completion is the command's") {
  const std::string script = CCBOX_TEST_SOURCE_DIR "/cli/completions/ccbox.bash";
  const auto offered = run({"bash", "-c",
                            "compopt() { :; }; source '" + script +
                                "'; COMP_WORDS=(ccbox run --bind . make --); COMP_CWORD=5; _ccbox; "
                                "printf '%s' \"${COMPREPLY[*]}\""});
  CHECK(offered.out == "");
}
