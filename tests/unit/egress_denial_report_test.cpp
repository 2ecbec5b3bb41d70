#include "plugins/egress/denial_report.hpp"

#include <doctest/doctest.h>

#include "plugins/egress/json_text.hpp"
#include "support/egress_loop.hpp"

using namespace ccbox::egress;
using namespace std::chrono_literals;

namespace {

struct scene {
  ccbox::test::egress_loop loop;
  std::vector<std::string> seen;
  denial_report report{loop.io().deadlines(), 5ms, [this](const std::string& json) { seen.push_back(json); }};
};

denial of(const std::string& host) {
  return {"http", host, 80, "port", "*.test", "t"};
}

}  // namespace

TEST_CASE("the first denial of a kind is reported at once") {
  scene s;
  s.report.add(of("a.test"));
  REQUIRE(s.seen.size() == 1);
  CHECK(
      s.seen[0] ==
      R"({"protocol":"http","host":"a.test","port":80,"reason":"port","rule":"*.test","origin":"t","count":1})");
}

TEST_CASE("those that follow are counted and reported together") {
  scene s;
  for (int i = 0; i < 100; ++i)
    s.report.add(of("a.test"));
  CHECK(s.seen.size() == 1);
  s.loop.run_until([&] { return s.seen.size() == 2; });
  CHECK(s.seen[1].find("\"count\":99") != std::string::npos);
}

TEST_CASE("kinds beyond the table are counted without their hosts") {
  scene s;
  for (std::size_t i = 0; i < denial_report::most_kinds + 7; ++i)
    s.report.add(of("h" + std::to_string(i) + ".test"));
  CHECK(s.seen.size() == denial_report::most_kinds);
  s.report.flush();
  CHECK(s.seen.back() ==
        R"({"protocol":"any","host":"","port":0,"reason":"others","rule":"","origin":"","count":7})");
}

TEST_CASE("a kind that stays away is forgotten, and is new when it comes back") {
  scene s;
  s.report.add(of("a.test"));
  CHECK_FALSE(s.report.is_idle());
  s.loop.run_until([&] { return s.report.is_idle(); });
  s.report.add(of("a.test"));
  CHECK(s.seen.size() == 2);
}

TEST_CASE("whatever bytes a client sends, a decoded report is one line of printable ASCII") {
  scene s;
  s.report.add(of(std::string("a\0\"\\\n\xff\x7f", 7)));
  CHECK(s.seen[0].find(R"("host":"a\\x00\"\\x5c\\x0a\\xff\\x7f")") != std::string::npos);
  s.report.add(of(std::string(100'000, 'h')));
  CHECK(s.seen[1].size() < 1000);
}

TEST_CASE("an empty object is one too") {
  CHECK(json_object().str() == "{}");
  CHECK(json_object().number("n", ~std::uint64_t{0}).text("t", "").str() ==
        R"({"n":18446744073709551615,"t":""})");
}
