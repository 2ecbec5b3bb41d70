#include "plugins/egress/sni_check.hpp"

#include <doctest/doctest.h>

using namespace ccbox::egress;
using verdict = sni_check::verdict;

namespace {

std::string u16(std::size_t n) {
  return {static_cast<char>(n >> 8), static_cast<char>(n & 0xff)};
}

// A ClientHello; without a name if there is none.
std::string hello(const std::string& name) {
  std::string extensions;
  if (!name.empty()) {
    const auto entry = std::string(1, '\0') + u16(name.size()) + name;
    const auto list = u16(entry.size()) + entry;
    extensions = std::string(2, '\0') + u16(list.size()) + list;
  }
  const auto body = std::string("\x03\x03", 2) + std::string(32, 'r') + std::string(1, '\0') +
                    std::string("\x00\x02\x13\x01\x01\x00", 6) + u16(extensions.size()) + extensions;
  const auto handshake = std::string("\x01\x00", 2) + u16(body.size()) + body;
  return std::string("\x16\x03\x01", 3) + u16(handshake.size()) + handshake;
}

std::string record(char type, const std::string& content) {
  return std::string(1, type) + "\x03\x03" + u16(content.size()) + content;
}

// A server's hello, with a random of `random`.
std::string server_hello(const std::string& random) {
  const auto body = "\x03\x03" + random + std::string("\x00\x13\x01\x00", 4);
  return record(22, std::string("\x02\x00", 2) + u16(body.size()) + body);
}

const std::string retry = server_hello(
    "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91"
    "\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c");

// A check that has passed the hello of a.test and knows what the server sent then.
sni_check greeted(const std::string& answer, sni_mode mode = sni_mode::enforce) {
  sni_check c(std::get<destination>(parse_host("a.test", 443)), mode);
  CHECK(c.look(hello("a.test")) == verdict::pass);
  CHECK(c.watching());
  for (const char byte : answer)
    c.origin_sent({&byte, 1});
  return c;
}

sni_check check(sni_mode mode, const std::string& host = "a.test") {
  return {std::get<destination>(parse_host(host, 443)), mode};
}

}  // namespace

TEST_CASE("the tunnel's own name passes, in any case and with a trailing dot") {
  for (const std::string name : {"a.test", "A.TEST", "a.test."})
    CHECK(check(sni_mode::enforce).look(hello(name)) == verdict::pass);
}

TEST_CASE("another name is refused when enforcing, and noted when logging") {
  for (const std::string name : {"b.test", "x.a.test", "a.test.b", "test", "a b", "127.0.0.1"}) {
    CAPTURE(name);
    auto strict = check(sni_mode::enforce);
    CHECK(strict.look(hello(name)) == verdict::refuse);
    CHECK(strict.note() == "sni-mismatch");
    CHECK(strict.seen() == name);
    auto lenient = check(sni_mode::log);
    CHECK(lenient.look(hello(name)) == verdict::pass);
    CHECK(lenient.note() == "sni-mismatch");
  }
}

TEST_CASE("a hello without a name passes, noted") {
  for (const auto mode : {sni_mode::log, sni_mode::enforce}) {
    auto c = check(mode);
    CHECK(c.look(hello("")) == verdict::pass);
    CHECK(c.note() == "sni-missing");
  }
}

TEST_CASE("half a hello is waited for, at every length") {
  const auto whole = hello("a.test");
  for (std::size_t length = 1; length < whole.size(); ++length)
    CHECK(check(sni_mode::enforce).look(whole.substr(0, length)) == verdict::wait);
}

TEST_CASE("a hello passes, and what came with it is looked at next") {
  auto c = check(sni_mode::enforce);
  CHECK(c.look(hello("a.test") + hello("b.test")) == verdict::pass);
  CHECK(c.passed() == hello("a.test").size());
  CHECK_FALSE(c.over());
  CHECK(c.look(hello("b.test")) == verdict::refuse);
}

TEST_CASE("a server that asks for a second hello is not told another name in it") {
  auto strict = greeted(retry);
  CHECK(strict.look(hello("b.test")) == verdict::refuse);
  CHECK(strict.note() == "sni-mismatch");
  auto lenient = greeted(retry, sni_mode::log);
  CHECK(lenient.look(hello("b.test")) == verdict::pass);
  CHECK(lenient.note() == "sni-mismatch");
  CHECK(lenient.over());
  auto same = greeted(retry);
  CHECK(same.look(hello("a.test")) == verdict::pass);
  CHECK(same.note().empty());
}

TEST_CASE("early data and the like in front of a second hello do not hide it") {
  auto c = greeted(retry);
  for (const char type : {20, 21, 23}) {
    const auto front = record(type, "early");
    for (std::size_t length = 1; length < front.size(); ++length)
      CHECK(c.look(front.substr(0, length)) == verdict::wait);
    CHECK(c.look(front + hello("b.test")) == verdict::pass);
    CHECK(c.passed() == front.size());
  }
  CHECK(c.look(hello("b.test")) == verdict::refuse);
  for (const auto& odd : {record(22, "\x10 no hello"), record(24, "beat"), std::string("\x16\x02\x01"),
                          std::string("\x17\x02\x01\x00\x01x", 6), std::string("plain text")})
    CHECK(greeted(retry).look(odd) == verdict::refuse);
}

TEST_CASE("the check is over when the server has answered with anything but a request for a second hello") {
  const auto hello_of_server = server_hello(std::string(32, 'r'));
  const auto alert = record(21, "\x01\x70"), change = record(20, "\x01");
  for (const auto& answer : {hello_of_server, alert + hello_of_server, retry + change + hello_of_server,
                             std::string("SSH-2.0-x\r\n"), record(23, "sealed"), record(22, "\x0b other")}) {
    auto c = greeted(answer);
    CHECK(c.over());
    CHECK(c.look("whatever") == verdict::pass);
    CHECK(c.passed() == 8);
  }
  for (const auto& no_answer : {std::string(), alert, retry, retry + change, retry + retry})
    CHECK(greeted(no_answer).watching());
}

TEST_CASE("a request for a second hello is known in any fragments") {
  const auto message = retry.substr(5);
  for (std::size_t cut = 1; cut < message.size(); ++cut) {
    auto c = greeted(record(22, message.substr(0, cut)) + record(22, message.substr(cut)));
    CHECK(c.watching());
    for (const char byte : server_hello(std::string(32, 'r')))
      c.origin_sent({&byte, 1});
    CHECK(c.over());
  }
}

TEST_CASE("what is not TLS passes at its first byte") {
  for (const std::string bytes : {"S", "G", "\x05"})
    CHECK(check(sni_mode::enforce).look(bytes) == verdict::pass);
}

TEST_CASE("nothing is looked at when off, or when the destination is an address") {
  CHECK_FALSE(check(sni_mode::off).needed());
  CHECK_FALSE(check(sni_mode::enforce, "192.0.2.1").needed());
  CHECK(check(sni_mode::enforce, "192.0.2.1").look(hello("b.test")) == verdict::pass);
}
