#include "cli/violation_report.hpp"

#include <doctest/doctest.h>

#include "json_reader.hpp"
#include "support/result_printing.hpp"

using namespace ccbox;

namespace {

sandbox_event refused(const std::string& target) {
  sandbox_event event;
  event.session_id = "s1";
  event.type = sandbox_event_type::violation;
  event.violation = sandbox_violation{"file-write-create", target, {}, R"({"rule":".env","reason":"r"})", 2};
  return event;
}

sandbox_event of_type(sandbox_event_type type) {
  sandbox_event event;
  event.type = type;
  return event;
}

}  // namespace

TEST_CASE("the four ways of telling have the names that the option takes") {
  CHECK(violations_mode_from_name("none") == violations_mode::none);
  CHECK(violations_mode_from_name("summary") == violations_mode::summary);
  CHECK(violations_mode_from_name("all") == violations_mode::all);
  CHECK(violations_mode_from_name("json") == violations_mode::json);
  for (const auto* name : {"", "All", "quiet"})
    CHECK_FALSE(violations_mode_from_name(name));
}

TEST_CASE("a summary says nothing before the end, and then a line for each kind") {
  violation_report report(violations_mode::summary, true);
  CHECK(report.take(refused("/w/.env"), {}).empty());
  CHECK(report.take(refused("/w/.env"), {}).empty());
  CHECK(report.take(of_type(sandbox_event_type::ready), {}).empty());
  CHECK(report.summary({}) == "ccbox: refused 4 times to make '/w/.env': .env; r\n");
}

TEST_CASE("with all of them each is a line at once, and the end says nothing more") {
  violation_report report(violations_mode::all, true);
  CHECK(report.take(refused("/w/.env"), {}) == "ccbox: refused 2 times to make '/w/.env': .env; r\n");
  CHECK(report.take(refused("/w/a\n.env"), {}) == "ccbox: refused 2 times to make '/w/a\\n.env': .env; r\n");
  auto lost = of_type(sandbox_event_type::unreachable);
  lost.unreachable = sandbox_unreachable{"gone.test:443", "dns-no-such-name", 1};
  CHECK(report.take(lost, {}) ==
        "ccbox: a connection to gone.test:443 failed: dns-no-such-name; it is allowed\n");
  CHECK(report.take(of_type(sandbox_event_type::ready), {}).empty());
  CHECK(report.summary({}).empty());
}

TEST_CASE("as JSON each is its event on one line") {
  violation_report report(violations_mode::json, true);
  const auto line = report.take(refused("/w/a\n.env"), {});
  CHECK(line.find('\n') == line.size() - 1);
  const auto read = parse_json(line);
  REQUIRE(read);
  CHECK(read->at("type") == "violation");
  CHECK(read->at("violation").at("target") == "/w/a\n.env");
  CHECK(read->at("violation").at("count") == 2);
  CHECK(report.summary({}).empty());
}

TEST_CASE("nothing is told of where nothing is wanted") {
  violation_report report(violations_mode::none, true);
  CHECK(report.take(refused("/w/.env"), {}).empty());
  CHECK(report.summary({}).empty());
}
