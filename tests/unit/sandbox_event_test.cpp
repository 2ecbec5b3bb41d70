#include "sandbox_event.hpp"

#include <doctest/doctest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "support/result_printing.hpp"

using namespace ccbox;

namespace {

std::string text_of(sandbox_event event) {
  event.session_id = "s1";
  event.sequence = 7;
  return boost::json::serialize(to_json(event));
}

sandbox_event output(std::string data) {
  sandbox_event event;
  event.type = sandbox_event_type::stdout_data;
  event.exec_id = 3;
  event.data = std::move(data);
  return event;
}

}  // namespace

TEST_CASE("every event type has the specification's name, and ours its own") {
  using enum sandbox_event_type;
  const std::vector<std::pair<sandbox_event_type, std::string>> names = {
      {stdout_data, "stdout"},  {stderr_data, "stderr"},
      {exit, "exit"},           {starting, "starting"},
      {ready, "ready"},         {killed, "killed"},
      {violation, "violation"}, {unreachable, "unreachable"}};
  for (const auto& [type, name] : names) {
    CHECK(to_string(type) == name);
    CHECK(sandbox_event_type_from_name(name) == type);
  }
  CHECK(!sandbox_event_type_from_name("stdin"));
  CHECK(!sandbox_event_type_from_name(""));
}

TEST_CASE("output that is text goes into JSON as it is") {
  CHECK(text_of(output("h\xc3\xbc\n\x1b[0m")) ==
        "{\"sessionId\":\"s1\",\"sequence\":7,\"type\":\"stdout\",\"execId\":3,\"data\":"
        "\"h\xc3\xbc\\n\\u001b[0m\"}");
  CHECK(text_of(output(std::string("\0", 1))) ==
        R"({"sessionId":"s1","sequence":7,"type":"stdout","execId":3,"data":"\u0000"})");
}

TEST_CASE("output that is no text goes into JSON as base64 with padding") {
  const std::vector<std::pair<std::string, std::string>> cases = {{"\xff", "/w=="},
                                                                  {"\xff\xfe", "//4="},
                                                                  {"\xff\xfe\xfd", "//79"},
                                                                  {"\xff"
                                                                   "abc",
                                                                   "/2FiYw=="},
                                                                  {"a\xc3", "YcM="}};
  for (const auto& [bytes, encoded] : cases) {
    CHECK(text_of(output(bytes)) == R"({"sessionId":"s1","sequence":7,"type":"stdout","execId":3,"data":")" +
                                        encoded + R"(","encoding":"base64"})");
  }
}

TEST_CASE("each event's JSON carries what its type has and nothing else") {
  sandbox_event event;
  event.data = "not output";
  event.exit_code = 137;
  event.reason = kill_reason::oom;
  event.violation = sandbox_violation{"file-write-create", "/w/.env", "canPush", "raw"};
  event.type = sandbox_event_type::starting;
  CHECK(text_of(event) == R"({"sessionId":"s1","sequence":7,"type":"starting"})");
  event.type = sandbox_event_type::ready;
  CHECK(text_of(event) == R"({"sessionId":"s1","sequence":7,"type":"ready"})");
  event.type = sandbox_event_type::killed;
  CHECK(text_of(event) == R"({"sessionId":"s1","sequence":7,"type":"killed","reason":"oom"})");
  event.exec_id = 2;
  event.type = sandbox_event_type::exit;
  CHECK(text_of(event) == R"({"sessionId":"s1","sequence":7,"type":"exit","execId":2,"exitCode":137})");
  event.type = sandbox_event_type::violation;
  CHECK(
      text_of(event) ==
      R"({"sessionId":"s1","sequence":7,"type":"violation","execId":2,"violation":{"action":"file-write-create",)"
      R"("target":"/w/.env","suggestedCapability":"canPush","raw":"raw"}})");
}

TEST_CASE("a destination that was not reached goes into JSON with its reason and count") {
  sandbox_event event;
  event.type = sandbox_event_type::unreachable;
  event.unreachable = sandbox_unreachable{"gone.test:443", "dns-no-such-name", 3};
  CHECK(text_of(event) ==
        R"({"sessionId":"s1","sequence":7,"type":"unreachable","unreachable":{"target":"gone.test:443",)"
        R"("reason":"dns-no-such-name","count":3}})");
}

TEST_CASE("the three reasons of a kill have their names") {
  CHECK(to_string(kill_reason::oom) == "oom");
  CHECK(to_string(kill_reason::timeout) == "timeout");
  CHECK(to_string(kill_reason::manual) == "manual");
}

TEST_CASE("a violation comes back from JSON equal, with and without what it may lack") {
  for (const auto& violation : {sandbox_violation{"file-read*", "/x\n\"", "canPush", "raw\ttext"},
                                sandbox_violation{"network-outbound", "", std::nullopt, std::nullopt}}) {
    const auto again = sandbox_violation_from_json(to_json(violation));
    REQUIRE(again);
    CHECK(*again == violation);
  }
  const auto nulls = sandbox_violation_from_json(
      boost::json::parse(R"({"action":"a","target":"t","suggestedCapability":null,"raw":null})"));
  REQUIRE(nulls);
  CHECK(!nulls->suggested_capability);
}

TEST_CASE("a malformed violation is refused with the key") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"target":"t"})", "action: is missing"},
      {R"({"action":"","target":"t"})", "action: must not be empty"},
      {R"({"action":"a"})", "target: is missing"},
      {R"({"action":"a","target":1})", "target: must be a string, not a number"},
      {R"({"action":"a","target":"t","raw":[]})", "raw: must be a string, not an array"},
      {R"({"action":"a","target":"t","errno":1})", "errno: unknown key"},
      {R"([])", "must be an object, not an array"}};
  for (const auto& [text, message] : cases) {
    const auto violation = sandbox_violation_from_json(boost::json::parse(text));
    REQUIRE(!violation);
    CHECK(violation.error().code == error_code::invalid_argument);
    CHECK(violation.error().what == message);
  }
}

TEST_CASE("a violation about a path that is no UTF-8 is still valid JSON") {
  const auto text = boost::json::serialize(to_json(sandbox_violation{"file-read*", "/caf\xe9", {}, "\xff"}));
  const auto again = sandbox_violation_from_json(boost::json::parse(text));
  REQUIRE(again);
  CHECK(again->target == "/caf\xef\xbf\xbd");
}
