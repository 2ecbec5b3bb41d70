#include "denial.hpp"

#include <doctest/doctest.h>

#include "support/result_printing.hpp"

using namespace ccbox;

namespace {

const std::string full =
    R"({"protocol":"connect","host":"evil.test","port":443,"reason":"blocked-by-allowlist","rule":"","origin":"","count":2})";

}  // namespace

TEST_CASE("a denial is a violation of the network with host and port as its target and the JSON as it came") {
  const auto violation = violation_of_denial(full, {});
  REQUIRE_MESSAGE(violation, violation.error().what);
  CHECK(violation->action == "network-outbound");
  CHECK(violation->target == "evil.test:443");
  CHECK(violation->raw == full);
  CHECK_FALSE(violation->suggested_capability);
}

TEST_CASE("the network capability is suggested to whom it is missing") {
  agent_capabilities none;
  none.network = false;
  CHECK(violation_of_denial(full, none)->suggested_capability == "canAccessNetwork");
}

TEST_CASE("an IPv6 address is in brackets, once") {
  CHECK(violation_of_denial(R"({"host":"2001:db8::1","port":80})", {})->target == "[2001:db8::1]:80");
  CHECK(violation_of_denial(R"({"host":"[2001:db8::1]","port":80})", {})->target == "[2001:db8::1]:80");
}

TEST_CASE("refusals without a host, which a plugin counted together, have a target of their own") {
  CHECK(violation_of_denial(R"({"host":"","port":0,"reason":"others","count":9})", {})->target == "*");
}

TEST_CASE("what is no denial is refused") {
  for (const std::string text :
       {"", "[]", "{}", "{\"host\":\"a\"}", "{\"port\":1}", "{\"host\":1,\"port\":1}",
        "{\"host\":\"a\",\"port\":-1}", "{\"host\":\"a\",\"port\":65536}", "{\"host\":\"a\",\"port\":\"1\"}",
        "{\"host\":\"a\",\"port\":1"}) {
    CAPTURE(text);
    CHECK_FALSE(violation_of_denial(text, {}));
  }
}

TEST_CASE("reports are denials or violations, and nothing else") {
  CHECK(violation_of_report("denial", full, {}));
  const auto violation = violation_of_report("violation", R"({"action":"file-read","target":"/x"})", {});
  REQUIRE(violation);
  CHECK(violation->action == "file-read");
  CHECK_FALSE(violation_of_report("violation", full, {}));
  CHECK_FALSE(violation_of_report("stdout", R"({"action":"a","target":"b"})", {}));
}
