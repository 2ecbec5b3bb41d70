// Every line of name_attempts.hpp, three times: with the rules it is refused, without them it succeeds, and
// with them the same succeeds for a name that no rule is about. So none passes because the call makes no
// sense.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "name_attempts.hpp"
#include "support/enclosed_table.hpp"

using namespace ccbox::test;

namespace {

std::string replaced(std::string text, const std::string& name) {
  for (std::size_t at = 0; (at = text.find('@', at)) != std::string::npos; at += name.size())
    text.replace(at, 1, name);
  return text;
}

// As a word of a script.
std::string escaped(const std::string& name) {
  std::string out;
  for (const unsigned char c : name) {
    char text[8];
    std::snprintf(text, sizeof text, c > 0x20 && c < 0x7f && c != '\\' && c != '{' ? "%c" : "\\x%02x", c);
    out += text;
  }
  return out;
}

table_row row_for(const name_attempt& of, const std::string& name) {
  return {replaced(of.setup, name), replaced(of.action, of.action.starts_with("sh ") ? name : escaped(name))};
}

void prove(const std::vector<name_attempt>& attempts,
           const std::vector<std::string>& elsewhere = without_names) {
  std::vector<table_row> forbidden, ordinary;
  for (const auto& each : attempts) {
    forbidden.push_back(row_for(each, each.name));
    ordinary.push_back(each.ordinary.empty() ? table_row{} : row_for(each, each.ordinary));
  }
  auto both = forbidden;
  both.insert(both.end(), ordinary.begin(), ordinary.end());
  const enclosed_table with(both, {}), without(forbidden, elsewhere);
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    const auto& each = attempts[i];
    CAPTURE(each.what);
    CAPTURE(each.action);
    {
      INFO("with the rule");
      CAPTURE(with[i].observed);
      CHECK(with[i].error == each.refused);
      CHECK(with.holds(i, replaced(each.state, each.name)));
    }
    {
      INFO("without the rule");
      CAPTURE(without[i].observed);
      CHECK(without[i].error == 0);
      CHECK_FALSE(without.holds(i, replaced(each.state, each.name)));
    }
    if (each.ordinary.empty()) continue;
    INFO("another name: " << each.ordinary);
    const auto neighbour = attempts.size() + i;
    CAPTURE(with[neighbour].observed);
    CHECK(with[neighbour].error == 0);
    CHECK_FALSE(with.holds(neighbour, replaced(each.state, each.ordinary)));
  }
}

}  // namespace

TEST_CASE("no call creates anything of a forbidden name, and every call creates other names") {
  prove(attempts_to_create);
}

TEST_CASE("neither does openat2, which nobody has without a broker who is root") {
  prove(attempts_by_openat2, {"--backend", "none"});
}

TEST_CASE("nothing writes to what has a forbidden name, or removes it") {
  prove(attempts_to_write);
}

TEST_CASE("nothing gets a forbidden name, or loses one, by being renamed or linked") {
  prove(attempts_to_rename_or_link);
}

TEST_CASE("rules about paths hold for whole trees that move, and symbolic links do not lead round them") {
  prove(attempts_on_paths);
}

TEST_CASE("ordinary programs are refused, and work with other names") {
  prove(attempts_with_tools);
}
