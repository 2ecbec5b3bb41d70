#include "shipped_config.hpp"

#include <doctest/doctest.h>

#include "support/temporary_directory.hpp"
#include "yaml_document.hpp"

using namespace ccbox;

namespace {

const std::string directory = std::string(CCBOX_TEST_SOURCE_DIR) + "/config/";

std::string text_of(const std::string& file) {
  const auto read = read_yaml_file(directory + file);
  REQUIRE_MESSAGE(read.has_value(), read.error().what);
  return *read;
}

template <class Config, class Parse, class Shipped>
void check_equal(const std::string& file, Parse parse, Shipped shipped) {
  for (const std::string& name :
       {directory + file, std::string("/etc/odd\nname.yaml"), std::string("x.yaml")}) {
    const result<Config> parsed = parse(text_of(file), name);
    REQUIRE_MESSAGE(parsed.has_value(), parsed.error().what);
    const std::optional<Config> taken = shipped(text_of(file), name);
    REQUIRE(taken.has_value());
    CHECK(*taken == *parsed);
  }
}

// Nothing that differs from the shipped text is taken for it.
template <class Shipped>
void check_exact(const std::string& file, Shipped shipped) {
  const std::string text = text_of(file);
  CHECK(shipped(text));
  CHECK_FALSE(shipped(""));
  CHECK_FALSE(shipped(text + "\n"));
  CHECK_FALSE(shipped(text.substr(0, text.size() - 1)));
  for (std::size_t at = 0; at < text.size(); at += 97) {
    std::string edited = text;
    edited[at] ^= 1;
    CHECK_FALSE(shipped(edited));
  }
}

std::string edited(const std::string& file, const std::string& from, const std::string& to) {
  std::string text = text_of(file);
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

const std::string plugins_here = "/usr/lib/ccbox plugins";

}  // namespace

TEST_CASE("a shipped file is the same from the table as from the parser") {
  check_equal<policy_config>("policy.yaml", parse_policy_config, shipped_policy);
  check_equal<egress_config>(
      "egress.yaml",
      [](const std::string& text, const std::string& name) {
        auto parsed = parse_egress_config(text, name);
        if (parsed) parsed->as_built = true;
        return parsed;
      },
      shipped_egress);
  check_equal<manifest>(
      "plugins.yaml",
      [](const std::string& text, const std::string& name) {
        return parse_manifest(text, name, plugins_here);
      },
      [](const std::string& text, const std::string& name) {
        return shipped_manifest(text, name, plugins_here);
      });
}

TEST_CASE("a file that is not the shipped one to the last byte is not taken for it") {
  check_exact("policy.yaml", [](const std::string& text) { return shipped_policy(text, "f").has_value(); });
  check_exact("egress.yaml", [](const std::string& text) { return shipped_egress(text, "f").has_value(); });
  check_exact("plugins.yaml",
              [](const std::string& text) { return shipped_manifest(text, "f", "/p").has_value(); });
}

TEST_CASE("an edit of the shipped policy counts, and so does a mistake in it") {
  const test::temporary_directory dir;
  dir.write("policy.yaml", edited("policy.yaml", "paths: [~/.ssh]", "paths: [~/.sshx]"));
  const auto loaded = load_policy_config(dir / "policy.yaml");
  REQUIRE_MESSAGE(loaded.has_value(), loaded.error().what);
  CHECK(loaded->read_deny[0].pattern == "~/.sshx");
  dir.write("policy.yaml", text_of("policy.yaml") + "more: []\n");
  const auto refused = load_policy_config(dir / "policy.yaml");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().what.find("unknown key 'more'") != std::string::npos);
}

TEST_CASE("an edit of the shipped egress rules counts, and so does a mistake in it") {
  const test::temporary_directory dir;
  dir.write("egress.yaml", edited("egress.yaml", "\nenable: []", "\nenable: [nothing-of-this-name]"));
  const auto refused = load_egress_config(dir / "egress.yaml");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().what.find("'nothing-of-this-name'") != std::string::npos);
  const auto shipped = load_egress_config(directory + "egress.yaml");
  REQUIRE(shipped.has_value());
  REQUIRE_FALSE(shipped->baseline.empty());
  const std::string first = shipped->baseline[0].entries[0].pattern;
  dir.write("egress.yaml", edited("egress.yaml", " " + first + " ", " edited.test "));
  const auto loaded = load_egress_config(dir / "egress.yaml");
  REQUIRE_MESSAGE(loaded.has_value(), loaded.error().what);
  CHECK(loaded->baseline[0].entries[0].pattern == "edited.test");
}

TEST_CASE("an edit of the shipped manifest counts, and so does a mistake in it") {
  const test::temporary_directory dir;
  dir.write("plugins.yaml", edited("plugins.yaml", "path: none.so", "path: other.so"));
  const auto loaded = load_manifest(dir / "plugins.yaml", plugins_here);
  REQUIRE_MESSAGE(loaded.has_value(), loaded.error().what);
  CHECK(loaded->plugins[1].path == plugins_here + "/other.so");
  dir.write("plugins.yaml", text_of("plugins.yaml") + "more: []\n");
  const auto refused = load_manifest(dir / "plugins.yaml", plugins_here);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().what.find("unknown key 'more'") != std::string::npos);
}
