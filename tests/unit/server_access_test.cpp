#include "access.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "support/temporary_directory.hpp"

using namespace ccbox;
using namespace ccbox::server;

namespace {

bool allowed(const caller& who) {
  return may_ask({"0123456789abcdef", {"https://app.test"}}, who).has_value();
}

}  // namespace

TEST_CASE("only a Host that names this machine is served") {
  for (const std::string host :
       {"localhost", "LocalHost", "localhost:80", "127.0.0.1", "127.0.0.1:8080", "[::1]", "[::1]:1"})
    CHECK_MESSAGE(allowed({false, host, {}, {}}), host);
  for (const std::string host :
       {"", "evil.test", "localhost.evil.test", "127.0.0.1.evil.test", "localhost:", "localhost:x",
        "localhost:123456", "127.0.0.2", "::1", "[::1", "localhost ", "localhost:80:80"})
    CHECK_MESSAGE(!allowed({false, host, {}, {}}), host);
}

TEST_CASE("an Origin is served if it is listed to the last byte, on every socket") {
  CHECK(allowed({false, "localhost", "https://app.test", {}}));
  for (const std::string origin :
       {"null", "", "https://app.test.evil", "http://app.test", "https://app.test:443", "HTTPS://APP.TEST"})
    CHECK_MESSAGE(!allowed({false, "localhost", origin, {}}), origin);
  CHECK_FALSE(allowed({true, "localhost", "https://evil.test", "Bearer 0123456789abcdef"}));
}

TEST_CASE("who comes by TCP shows the token") {
  CHECK(allowed({true, "127.0.0.1", {}, "Bearer 0123456789abcdef"}));
  CHECK(allowed({true, "127.0.0.1", {}, "bearer 0123456789abcdef"}));
  CHECK_FALSE(allowed({true, "127.0.0.1", {}, {}}));
  for (const std::string word :
       {"", "Bearer", "Bearer ", "Bearer 0123456789abcde", "Bearer 0123456789abcdeff",
        "Basic 0123456789abcdef", "0123456789abcdef", "Bearer  0123456789abcdef"})
    CHECK_MESSAGE(!allowed({true, "127.0.0.1", {}, word}), word);
  // A server without a token serves nobody by TCP.
  CHECK_FALSE(may_ask({"", {}}, {true, "localhost", {}, "Bearer "}).has_value());
}

TEST_CASE("a token comes from a file that is private to this user") {
  const test::temporary_directory dir;
  const auto file = dir.write("token", "  0123456789abcdef\n");
  REQUIRE(::chmod(file.c_str(), 0600) == 0);
  const auto token = read_token(file);
  REQUIRE(token.has_value());
  CHECK(*token == "0123456789abcdef");
  REQUIRE(::chmod(file.c_str(), 0640) == 0);
  CHECK_FALSE(read_token(file).has_value());
  for (const std::string text : {"", "\n", "short", "two words of 16 bytes"}) {
    const auto bad = dir.write("bad", text);
    REQUIRE(::chmod(bad.c_str(), 0600) == 0);
    CHECK_MESSAGE(!read_token(bad).has_value(), text);
  }
  CHECK_FALSE(read_token(dir / "missing").has_value());
  CHECK_FALSE(read_token(dir.path()).has_value());
}
