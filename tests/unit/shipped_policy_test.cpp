#include "shipped_policy.hpp"

#include <doctest/doctest.h>

#include "support/temporary_directory.hpp"
#include "yaml_document.hpp"

using namespace ccbox;

namespace {

const std::string file = std::string(CCBOX_TEST_SOURCE_DIR) + "/config/policy.yaml";

std::string text() {
  const auto read = read_yaml_file(file);
  REQUIRE_MESSAGE(read.has_value(), read.error().what);
  return *read;
}

}  // namespace

TEST_CASE("the shipped policy is the same from the table as from the parser") {
  for (const std::string& name : {file, std::string("/etc/odd\nname.yaml"), std::string()}) {
    const auto parsed = parse_policy_config(text(), name);
    REQUIRE_MESSAGE(parsed.has_value(), parsed.error().what);
    const auto shipped = shipped_policy(text(), name);
    REQUIRE(shipped.has_value());
    CHECK(*shipped == *parsed);
  }
}

TEST_CASE("a policy that is not the shipped one to the last byte is not taken for it") {
  const std::string shipped = text();
  CHECK_FALSE(shipped_policy("", "p").has_value());
  CHECK_FALSE(shipped_policy(shipped + "\n", "p").has_value());
  CHECK_FALSE(shipped_policy(shipped.substr(0, shipped.size() - 1), "p").has_value());
  for (std::size_t at = 0; at < shipped.size(); at += 997) {
    std::string edited = shipped;
    edited[at] ^= 1;
    CHECK_FALSE(shipped_policy(edited, "p").has_value());
  }
}

TEST_CASE("an edit of the shipped policy counts, and so does a mistake in it") {
  const test::temporary_directory dir;
  std::string edited = text();
  const std::string from = "paths: [~/.ssh]";
  const auto at = edited.find(from);
  REQUIRE(at != std::string::npos);
  dir.write("policy.yaml", edited.replace(at, from.size(), "paths: [~/.sshx]"));
  const auto loaded = load_policy_config(dir / "policy.yaml");
  REQUIRE_MESSAGE(loaded.has_value(), loaded.error().what);
  CHECK(loaded->read_deny[0].pattern == "~/.sshx");
  dir.write("policy.yaml", text() + "more: []\n");
  const auto refused = load_policy_config(dir / "policy.yaml");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().what.find("unknown key 'more'") != std::string::npos);
}
