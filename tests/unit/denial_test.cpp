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

TEST_CASE("a denied file is a violation with its path as the target and the verb of macOS") {
  const auto of = [](const std::string& operation) {
    return violation_of_denial(R"({"operation":")" + operation + R"(","path":"/work/.env","rule":".env"})",
                               {});
  };
  for (const auto* operation : {"create", "mkdir", "mknod", "symlink", "rename"})
    CHECK(of(operation)->action == "file-write-create");
  CHECK(of("write")->action == "file-write-data");
  CHECK(of("remove")->action == "file-write-unlink");
  CHECK(of("link")->action == "file-link");
  CHECK(of("create")->target == "/work/.env");
  CHECK_FALSE(of("create")->suggested_capability);
  CHECK_FALSE(of("read"));
  CHECK_FALSE(violation_of_denial(R"({"path":"/work/.env"})", {}));
  CHECK_FALSE(violation_of_denial(R"({"operation":"create","path":3})", {}));
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

TEST_CASE("reports are denials, violations or unreachable destinations, and nothing else") {
  const auto denial = event_of_report("denial", full, {});
  REQUIRE(denial);
  CHECK(denial->type == sandbox_event_type::violation);
  CHECK(denial->violation == *violation_of_denial(full, {}));
  const auto violation = event_of_report("violation", R"({"action":"file-read","target":"/x"})", {});
  REQUIRE(violation);
  CHECK(violation->type == sandbox_event_type::violation);
  CHECK(violation->violation->action == "file-read");
  CHECK_FALSE(event_of_report("violation", full, {}));
  CHECK_FALSE(event_of_report("stdout", R"({"action":"a","target":"b"})", {}));
}

TEST_CASE("an allowed destination that was not reached is an event of its own, and no violation") {
  const auto event = event_of_report(
      "unreachable", R"({"protocol":"http","host":"gone.test","port":80,"reason":"dns-timeout","count":7})",
      {});
  REQUIRE(event);
  CHECK(event->type == sandbox_event_type::unreachable);
  CHECK(event->unreachable == sandbox_unreachable{"gone.test:80", "dns-timeout", 7});
  CHECK_FALSE(event->violation);
  for (const std::string text :
       {"", "{}", R"({"host":"a","port":80})", R"({"host":"a","port":70000,"reason":"r"})",
        R"({"host":"a","port":80,"reason":"r","count":"x"})"}) {
    CAPTURE(text);
    CHECK_FALSE(event_of_report("unreachable", text, {}));
  }
}

TEST_CASE("the capability is suggested whose destinations it is one of") {
  const std::vector<withheld_domain> withheld{{"*.github.test", "canCallGitHubApi"},
                                              {"only.test:8443", "canCallTicketing"}};
  const auto suggested = [&](const std::string& host, const std::string& rest) {
    return violation_of_denial("{\"host\":\"" + host + "\"," + rest + "}", {}, withheld)
        ->suggested_capability;
  };
  const std::string by_list = R"("port":443,"reason":"blocked-by-allowlist")";
  CHECK(suggested("api.github.test", by_list) == "canCallGitHubApi");
  CHECK_FALSE(suggested("github.test", by_list));
  CHECK_FALSE(suggested("api.github.test.evil.test", by_list));
  CHECK_FALSE(suggested("only.test", by_list));
  CHECK(suggested("only.test", R"("port":8443,"reason":"blocked-by-allowlist")") == "canCallTicketing");
  CHECK_FALSE(suggested("api.github.test", R"("port":443,"reason":"blocked-by-denylist")"));
  agent_capabilities none;
  none.network = false;
  CHECK_FALSE(violation_of_denial(R"({"host":"a","port":1,"reason":"blocked-by-denylist"})", none)
                  ->suggested_capability);
}

TEST_CASE("a violation says for how many refused actions it stands") {
  CHECK(violation_of_denial(full, {})->count == 2);
  CHECK(violation_of_denial(R"({"operation":"create","path":"/x","count":4})", {})->count == 4);
  CHECK(violation_of_denial(R"({"operation":"create","path":"/x"})", {})->count == 1);
}

TEST_CASE("what a sandboxed process put into a violation can neither move a cursor nor reorder a line") {
  const auto violation = violation_of_denial(
      "{\"operation\":\"create\",\"path\":\"/w/\\u001b[2J\\u202e\\n.env\",\"rule\":\"\xe2\x80\xae\"}", {});
  REQUIRE(violation);
  CHECK(violation->target == "/w/\\x1b[2J\\xe2\\x80\\xae\\n.env");
  CHECK(violation->raw->find("\xe2\x80\xae") == std::string::npos);
  CHECK(violation->raw->ends_with("\"rule\":\"\\u202e\"}"));
  auto again = *violation;
  make_safe(again);
  CHECK(again == *violation);

  sandbox_violation huge{std::string(1000, 'a'), std::string(100000, 'b'), {}, std::string(200000, 'c'), 0};
  make_safe(huge);
  CHECK(huge.action.size() == 128);
  CHECK(huge.target.size() == 16 << 10);
  CHECK(huge.raw->size() == 64 << 10);
  CHECK(huge.count == 1);
}
