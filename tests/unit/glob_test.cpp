#include "glob.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <random>

using namespace ccbox;

namespace {

glob make(std::string_view pattern) {
  auto g = compile_glob(pattern);
  REQUIRE_MESSAGE(g.has_value(), std::string(pattern));
  return *g;
}

bool matches(std::string_view pattern, std::string_view path) {
  return make(pattern).matches(path);
}

std::vector<std::string> split(const std::string& path) {
  std::vector<std::string> out;
  std::string part;
  for (const char c : path + "/") {
    if (c != '/') {
      part += c;
      continue;
    }
    if (!part.empty() && part != ".") out.push_back(part);
    part.clear();
  }
  return out;
}

// The definition, by backtracking: only for short texts over plain ASCII.
bool naive_name(std::string_view p, std::string_view t) {
  if (p.empty()) return t.empty();
  if (p[0] == '*') return naive_name(p.substr(1), t) || (!t.empty() && naive_name(p, t.substr(1)));
  return !t.empty() && (p[0] == '?' || p[0] == t[0]) && naive_name(p.substr(1), t.substr(1));
}

bool naive_path(const std::vector<std::string>& p, std::size_t i, const std::vector<std::string>& t,
                std::size_t j) {
  if (i == p.size()) return j == t.size();
  if (p[i] == "**") {
    if (i + 1 == p.size()) return j < t.size();
    return naive_path(p, i + 1, t, j) || (j < t.size() && naive_path(p, i, t, j + 1));
  }
  return j < t.size() && naive_name(p[i], t[j]) && naive_path(p, i + 1, t, j + 1);
}

bool naive_match(const std::string& pattern, const std::string& path) {
  auto p = split(pattern);
  if (pattern.find('/') == std::string::npos && pattern != "**") p.insert(p.begin(), "**");
  return naive_path(p, 0, split(path), 0);
}

}  // namespace

TEST_CASE("a name matches at any depth") {
  for (const auto path : {".env", "a/.env", "a/b/c/d/.env"})
    CHECK(matches(".env", path));
  CHECK(matches("*.key", "deep/er/x.key"));
  CHECK(matches("*.key", ".key"));
  CHECK_FALSE(matches("*.key", "x.keys"));
  CHECK_FALSE(matches(".env", "a.env"));
  CHECK_FALSE(matches(".env", ".env/x"));
}

TEST_CASE("a path below any directory matches there and nowhere else") {
  CHECK(matches("**/.git/hooks/*", ".git/hooks/pre-commit"));
  CHECK(matches("**/.git/hooks/*", "repos/r0/.git/hooks/pre-commit"));
  CHECK_FALSE(matches("**/.git/hooks/*", ".git/hooks"));
  CHECK_FALSE(matches("**/.git/hooks/*", "git/hooks/x"));
  CHECK(matches("**/.git/modules/**/hooks/*", ".git/modules/hooks/x"));
  CHECK(matches("**/.git/modules/**/hooks/*", "a/.git/modules/sm/nested/hooks/x"));
}

TEST_CASE("a path without `**` is anchored") {
  CHECK(matches("hooks/*", "hooks/x"));
  CHECK_FALSE(matches("hooks/*", "a/hooks/x"));
  CHECK(matches("./config", "config"));
  CHECK_FALSE(matches("./config", "a/config"));
}

TEST_CASE("a last `**` is everything below, not the directory itself") {
  CHECK(matches("a/**", "a/b"));
  CHECK(matches("a/**", "a/b/c"));
  CHECK_FALSE(matches("a/**", "a"));
  CHECK(matches("**", "x"));
}

TEST_CASE("matches_within covers what lies below a match") {
  const auto g = make("**/.git/hooks/*");
  CHECK(g.matches_within("r/.git/hooks/dir/file"));
  CHECK_FALSE(g.matches("r/.git/hooks/dir/file"));
  CHECK_FALSE(g.matches_within("r/.git/hooks"));
  CHECK_FALSE(g.matches_within(""));
}

TEST_CASE("case makes no difference") {
  CHECK(matches(".env", ".ENV"));
  CHECK(matches("*.key", "X.KeY"));
  CHECK(matches("*.KEY", "x.key"));
  CHECK(matches("**/.git/hooks/*", ".Git/HOOKS/Pre-Commit"));
}

TEST_CASE("letters that fold to ASCII and characters that file systems skip make no difference") {
  CHECK(matches("*.key",
                "x.\xe2\x84\xaa"
                "ey"));                                         // KELVIN SIGN
  CHECK(matches(".bashrc", ".ba\xc5\xbfhrc"));                  // LATIN SMALL LETTER LONG S
  CHECK(matches("**/.git/config", ".g\xe2\x80\x8cit/config"));  // ZERO WIDTH NON-JOINER
  CHECK(matches(".env", ".env\xef\xbb\xbf"));                   // ZERO WIDTH NO-BREAK SPACE
  CHECK_FALSE(matches(".env", ".\xc3\xa9nv"));
}

TEST_CASE("brackets, braces, backslashes, newlines and stray bytes are literal") {
  CHECK(matches("[ab]", "[ab]"));
  CHECK_FALSE(matches("[ab]", "a"));
  CHECK(matches("{a,b}", "{a,b}"));
  CHECK(matches("a\\*", "a\\b"));
  CHECK(matches("n\nl", "n\nl"));
  CHECK(matches("\xff*", "\xff\xfe"));
  CHECK(matches("*.key", "\xc3.key"));
}

TEST_CASE("`?` is one character, also one of several bytes or one stray byte") {
  CHECK(matches("?.key", "x.key"));
  CHECK(matches("?.key", "\xc3\xa9.key"));
  CHECK(matches("?.key", "\xff.key"));
  CHECK_FALSE(matches("?.key", ".key"));
  CHECK_FALSE(matches("?.key", "xy.key"));
}

TEST_CASE("globs that could name nothing, or too much to say, are refused and named") {
  const std::string deep = [] {
    std::string out = "a";
    for (int i = 0; i < 62; ++i)
      out += "/a";
    return out;
  }();
  for (const std::string& bad :
       {std::string(), std::string("/etc/x"), std::string("a/../b"), std::string("./"),
        std::string("a\0b", 3), std::string(5000, 'a'), deep, std::string("\xef\xbb\xbf")}) {
    const auto g = compile_glob(bad);
    REQUIRE_FALSE(g.has_value());
    CHECK(g.error().code == error_code::invalid_argument);
    CHECK(g.error().what.starts_with("glob '"));
    CHECK(g.error().what.size() < 1200);
  }
}

TEST_CASE("remaining says what is left of a glob at a directory") {
  const auto at = [](const glob& g, std::initializer_list<std::string_view> names) {
    auto positions = g.start();
    for (const auto name : names)
      positions = g.step(positions, fold_name(name));
    return g.remaining(positions);
  };
  const auto hooks = make("**/.git/hooks/*");
  CHECK(at(hooks, {"w"}) == std::vector<std::string>{"**/.git/hooks/*"});
  CHECK(at(hooks, {"w", ".git"}) == std::vector<std::string>{"**/.git/hooks/*", "hooks/*"});
  CHECK(at(hooks, {"w", ".git", "hooks"}) == std::vector<std::string>{"**/.git/hooks/*", "./*"});
  CHECK(at(make("w/x"), {"v"}).empty());
  for (const auto& text : at(hooks, {".git", "hooks"}))
    CHECK(compile_glob(text).has_value());
}

TEST_CASE("a glob that would make a backtracking matcher explode is answered at once") {
  std::string pattern = "**";
  for (int i = 0; i < 30; ++i)
    pattern += "/*a*a*a*a*a*b/**";
  const auto g = make(pattern);
  std::string path;
  for (int i = 0; i < 200; ++i)
    path += std::string(200, 'a') + "/";
  const auto begin = std::chrono::steady_clock::now();
  CHECK_FALSE(g.matches(path));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(2));
}

TEST_CASE("globs and sets of globs agree with the definition on random short paths") {
  std::mt19937 random(20240607);
  const auto pick = [&](const std::vector<std::string>& from) { return from[random() % from.size()]; };
  const std::vector<std::string> pattern_parts = {"a", "b", "*", "?", "a*", "*b", "**", "a?b", "*a*", "ab"};
  const std::vector<std::string> name_parts = {"a", "b", "ab", "ba", "aab", "abb", "c"};
  const auto join = [&](const std::vector<std::string>& from, std::size_t most) {
    std::string out = pick(from);
    for (std::size_t n = random() % most; n > 0; --n)
      out += "/" + pick(from);
    return out;
  };
  std::size_t matched = 0;
  for (int round = 0; round < 400; ++round) {
    glob_set set;
    std::vector<std::string> patterns;
    for (int i = 0; i < 6; ++i) {
      patterns.push_back(join(pattern_parts, 4));
      set.add(make(patterns.back()));
    }
    for (int i = 0; i < 20; ++i) {
      const std::string path = join(name_parts, 5);
      auto state = set.start();
      std::vector<std::uint32_t> accepted;
      for (const auto& part : split(path)) {
        accepted.clear();
        state = set.step(state, part, &accepted);
      }
      for (std::uint32_t p = 0; p < patterns.size(); ++p) {
        const bool expected = naive_match(patterns[p], path);
        CAPTURE(patterns[p]);
        CAPTURE(path);
        REQUIRE(set[p].matches(path) == expected);
        REQUIRE((std::find(accepted.begin(), accepted.end(), p) != accepted.end()) == expected);
        matched += expected;
      }
    }
  }
  CHECK(matched > 1000);  // the comparison saw both answers
}

TEST_CASE("wildcard_match crosses slashes and has regard to case unless told") {
  CHECK(wildcard_match("*://*:*@*", "https://user:pw@host/x"));
  CHECK_FALSE(wildcard_match("*://*:*@*", "https://host/x"));
  CHECK(wildcard_match("ghp_*", "ghp_abc"));
  CHECK_FALSE(wildcard_match("ghp_*", "GHP_abc"));
  CHECK(wildcard_match("LD_*", "ld_preload", true));
}
