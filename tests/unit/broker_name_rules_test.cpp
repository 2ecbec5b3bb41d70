#include <doctest/doctest.h>

#include <string>

#include "plugins/bubblewrap/broker/name_rules.hpp"

using namespace ccbox::bubblewrap;

namespace {

name_rules made(std::vector<name_anchor> anchors) {
  broker_orders orders;
  orders.anchors = std::move(anchors);
  std::string problem;
  auto rules = name_rules::make(orders, problem);
  REQUIRE_MESSAGE(rules.has_value(), problem);
  return std::move(*rules);
}

name_rules usual() {
  return made({{"/w",
                {{".env", "secrets"},
                 {"*.key", "keys"},
                 {"**/.git/hooks/*", "hooks"},
                 {"**/.git/config", "configuration"},
                 {"**/.idea/**", "editor"}},
                {"**/.git/hooks/*.sample", "ok.key"}}});
}

// The reason of the rule, or nothing.
std::string refusal(const name_rules& rules, const std::string& directory, const std::string& name) {
  const auto* rule = rules.forbids(rules.at(directory), name);
  return rule ? rule->reason : "";
}
std::string link_refusal(const name_rules& rules, const std::string& directory, const std::string& name) {
  const auto* rule = rules.leads_to(rules.at(directory), name);
  return rule ? rule->reason : "";
}

}  // namespace

TEST_CASE("a name is forbidden at any depth below its anchor and nowhere else") {
  const auto rules = usual();
  for (const char* directory : {"/w", "/w/a", "/w/a/b/c/d"})
    CHECK(refusal(rules, directory, ".env") == "secrets");
  for (const char* directory : {"/", "/v", "/wx", "/w-evil/w", "/tmp/w"})
    CHECK(refusal(rules, directory, ".env") == "");
  CHECK(refusal(rules, "/w", ".env2") == "");
  CHECK(refusal(rules, "/w", "x.env") == "");
}

TEST_CASE("neither case nor what file systems ignore nor letters that fold make another name of it") {
  const auto rules = usual();
  for (const char* name : {".ENV", ".eNv", ".e\xe2\x80\x8cnv", ".env\xef\xbb\xbf"})
    CHECK_MESSAGE(refusal(rules, "/w", name) == "secrets", name);
  for (const char* name : {"x.KEY",
                           "x.\xe2\x84\xaa"
                           "ey",
                           ".key", "\xff\n.key"})
    CHECK_MESSAGE(refusal(rules, "/w", name) == "keys", name);
  CHECK(refusal(rules, "/w/.GIT/Hooks", "Pre-Commit") == "hooks");
}

TEST_CASE("what is exempt may be made, and nothing beside it") {
  const auto rules = usual();
  CHECK(refusal(rules, "/w/.git/hooks", "pre-commit.sample") == "");
  CHECK(refusal(rules, "/w/.git/hooks", "pre-commit.sample2") == "hooks");
  CHECK(refusal(rules, "/w", "ok.key") == "");
  CHECK(refusal(rules, "/w", "not-ok.key") == "keys");
}

TEST_CASE("a rule about a path counts in its directory, not above it or beside it") {
  const auto rules = usual();
  CHECK(refusal(rules, "/w/.git", "hooks") == "");
  CHECK(refusal(rules, "/w/.git/hooks", "x") == "hooks");
  CHECK(refusal(rules, "/w/a/.git/hooks", "x") == "hooks");
  CHECK(refusal(rules, "/w/.git/hooks/d", "x") == "");
  CHECK(refusal(rules, "/w/git/hooks", "x") == "");
  CHECK(refusal(rules, "/w/.git", "config") == "configuration");
  CHECK(refusal(rules, "/w", "config") == "");
  CHECK(refusal(rules, "/w", ".idea") == "");
  CHECK(refusal(rules, "/w/.idea", "x") == "editor");
  CHECK(refusal(rules, "/w/.idea/a/b", "x") == "editor");
}

TEST_CASE("a symbolic link must not have a name that a rule about paths goes through") {
  const auto rules = usual();
  CHECK(link_refusal(rules, "/w", ".git") != "");
  CHECK(link_refusal(rules, "/w/a", ".GIT") != "");
  CHECK(link_refusal(rules, "/w/.git", "hooks") == "hooks");
  CHECK(link_refusal(rules, "/w", ".idea") == "editor");
  CHECK(link_refusal(rules, "/w", "git") == "");
  CHECK(link_refusal(rules, "/w", "hooks") == "");
  CHECK(link_refusal(rules, "/", ".git") == "");
}

TEST_CASE("a walk by steps arrives where a whole path does") {
  const auto rules = usual();
  auto state = rules.at("/w");
  for (const char* name : {"a", ".Git", "HOOKS"})
    state = rules.into(state, name);
  CHECK(state == rules.at("/w/a/.git/hooks"));
  CHECK_FALSE(state == rules.at("/w/a/git/hooks"));
  CHECK(rules.at("/w/a") == rules.at("/w/b/c"));
}

TEST_CASE("each anchor has a say, also one inside another and the root") {
  const auto rules = made({{"/", {{"./home/u/.config/autostart", "once"}}, {}},
                           {"/w", {{"*.key", "outer"}}, {}},
                           {"/w/in", {{"*.pem", "inner"}}, {"*.key"}}});
  CHECK(refusal(rules, "/home/u/.config", "autostart") == "once");
  CHECK(refusal(rules, "/w/home/u/.config", "autostart") == "");
  CHECK(refusal(rules, "/w", "x.pem") == "");
  CHECK(refusal(rules, "/w/in", "x.pem") == "inner");
  // What one anchor exempts, another may still forbid.
  CHECK(refusal(rules, "/w/in", "x.key") == "outer");
}

TEST_CASE("what is remembered of a path is what a fresh look would say, however many there are") {
  const auto rules = usual();
  for (int i = 0; i < 10000; ++i) {
    const auto directory = "/w/" + std::to_string(i) + "/.git/hooks";
    REQUIRE(refusal(rules, directory, "x") == "hooks");
  }
  CHECK(refusal(rules, "/w/0/.git/hooks", "x") == "hooks");
  CHECK(refusal(rules, "/w/0/.git/hook", "x") == "");
}

TEST_CASE("ten thousand rules and globs that could backtrack are matched all the same") {
  std::vector<name_rule> deny;
  for (int i = 0; i < 10000; ++i)
    deny.push_back({"**/d" + std::to_string(i) + "/*.x", std::to_string(i)});
  deny.push_back({"*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", "backtracking"});
  const auto rules = made({{"/w", deny, {}}});
  CHECK(refusal(rules, "/w/d9999", "y.x") == "9999");
  CHECK(refusal(rules, "/w", std::string(255, 'a')) == "");
  CHECK(refusal(rules, "/w", std::string(254, 'a') + "b") == "backtracking");
}

TEST_CASE("a glob that is none is named") {
  broker_orders orders;
  orders.anchors.push_back({"/w", {{"../x", ""}}, {}});
  std::string problem;
  CHECK_FALSE(name_rules::make(orders, problem).has_value());
  CHECK(problem.find("../x") != problem.npos);
}
