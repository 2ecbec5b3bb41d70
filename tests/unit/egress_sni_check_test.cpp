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

TEST_CASE("what is not TLS passes at its first byte") {
  for (const std::string bytes : {"S", "G", "\x05"})
    CHECK(check(sni_mode::enforce).look(bytes) == verdict::pass);
}

TEST_CASE("nothing is looked at when off, or when the destination is an address") {
  CHECK_FALSE(check(sni_mode::off).needed());
  CHECK_FALSE(check(sni_mode::enforce, "192.0.2.1").needed());
  CHECK(check(sni_mode::enforce, "192.0.2.1").look(hello("b.test")) == verdict::pass);
}
