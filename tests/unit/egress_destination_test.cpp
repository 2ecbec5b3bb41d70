#include "plugins/egress/destination.hpp"

#include <doctest/doctest.h>

#include <random>
#include <set>
#include <vector>

using namespace ccbox::egress;
using namespace std::string_literals;

namespace {

std::string shown(const parsed<destination>& result) {
  if (const auto* bad = std::get_if<malformed>(&result)) return "refused: " + std::string(bad->why);
  return authority_text(std::get<destination>(result));
}

std::string host(std::string_view text) {
  return shown(parse_host(text, 443));
}

std::string authority(std::string_view text, std::uint16_t default_port = 0) {
  return shown(parse_authority(text, default_port));
}

std::string domain(std::string_view text) {
  return shown(from_domain_name(text, 443));
}

bool refused(const std::string& result) {
  return result.starts_with("refused: ");
}

std::string repeated(std::size_t times, const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i)
    out += text;
  return out;
}

}  // namespace

TEST_CASE("a name is folded to lower case and loses one trailing dot") {
  CHECK(host("example.com") == "example.com:443");
  CHECK(host("ALLOWED.Test") == "allowed.test:443");
  CHECK(host("denied.allowed.test.") == "denied.allowed.test:443");
  CHECK(host("metadata.google.internal.") == "metadata.google.internal:443");
  CHECK(host("localhost.") == "localhost:443");
  CHECK(host("x_y.a-b.test") == "x_y.a-b.test:443");
  CHECK(host("xn--bcher-kva.de") == "xn--bcher-kva.de:443");
}

TEST_CASE("an empty label is refused wherever it stands") {
  for (const std::string_view text :
       {"", ".", "..", ".a", "a..b", "a..", "allowed.test..", "169.254.169.254..", "127.0.0.1..",
        "bedrock..amazonaws.com", "...", ".127.0.0.1"})
    CHECK_MESSAGE(refused(host(text)), std::string(text));
  CHECK(host("a..b") == "refused: a label of the host name is empty");
  CHECK(host("") == "refused: the host name is empty");
}

TEST_CASE("every byte that is not a letter, digit, hyphen, underscore or dot is refused in every place") {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_' || c == '.';
    for (const auto& text : {c + "evil.test"s, "evil"s + c + "x.allowed.test"s, "evil.test"s + c}) {
      const bool empty_label = c == '.' && text[0] == '.';
      CHECK_MESSAGE(refused(host(text)) == (!good || empty_label), byte);
      CHECK_MESSAGE(refused(domain(text)) == (!good || empty_label), byte);
    }
  }
}

TEST_CASE("a NUL never ends a name") {
  for (const auto& text :
       {"evil.test\0.allowed.test"s, "127.0.0.9\0.allowed.test"s, "allowed.test\0.evil.test"s,
        "allowed.test\0"s, "\0allowed.test"s, "\0"s, "::1\0"s, "[::1]\0"s}) {
    CHECK(refused(host(text)));
    CHECK(refused(domain(text)));
    CHECK(refused(authority(text + ":443")));
  }
  CHECK(host("allowed.test\0"s) == "refused: the host name contains a NUL byte");
}

TEST_CASE("names that other software folds into others are refused") {
  for (const std::string_view text : {"evil\u3002test",
                                      "evil\uff0etest",
                                      "evil\uff61test",
                                      "\uff45vil.test",
                                      "b\u00fccher.de",
                                      "evil.test\u00ad",
                                      "e\u0301vil.test",
                                      "evil.test\xff",
                                      "\xc0\xae",
                                      "%65vil.test",
                                      "evil%2etest",
                                      "evil%00.test",
                                      "evil.test%",
                                      "allowed.test@evil.test",
                                      "allowed.test\\@evil.test",
                                      "allowed.test#@evil.test",
                                      "allowed.test?.evil.test",
                                      "allowed.test/evil",
                                      "evil.test:443.allowed.test",
                                      "evil.test\r\n",
                                      "evil.test\r\nHost: allowed.test",
                                      "evil.test ",
                                      " evil.test",
                                      "evil\ttest",
                                      "::ffff:1.2.3.4%x.allowed.com",
                                      "*.allowed.test",
                                      "a,b",
                                      "(a)"}) {
    CHECK_MESSAGE(refused(host(text)), std::string(text));
    CHECK_MESSAGE(refused(domain(text)), std::string(text));
    CHECK_MESSAGE(refused(authority(text, 443)), std::string(text));
  }
}

TEST_CASE("labels have 63 bytes at most and names 253") {
  const std::string label63(63, 'a');
  CHECK(host(label63 + ".test") == label63 + ".test:443");
  CHECK(refused(host(label63 + "a.test")));
  CHECK(refused(host("test." + label63 + "a")));
  const auto name253 = label63 + "." + label63 + "." + label63 + "." + std::string(61, 'b');
  REQUIRE(name253.size() == 253);
  CHECK_FALSE(refused(host(name253)));
  CHECK(host(name253 + ".") == name253 + ":443");
  CHECK(refused(host(name253 + "b")));
  CHECK(refused(domain(name253 + "bb")));
  CHECK_FALSE(refused(host(repeated(126, "a.") + "a")));
  CHECK(refused(host(repeated(127, "a.") + "a")));
  CHECK(refused(host(std::string(1 << 20, 'a'))));
  CHECK(refused(host(repeated(1 << 19, "a."))));
}

TEST_CASE("every IPv4 spelling becomes the address itself") {
  for (const std::string_view text :
       {"127.0.0.9", "2130706441", "0x7f000009", "0177.0.0.011", "127.9", "0x7f.0.0.9", "017700000011",
        "127.0.0.9.", "0X7F.9", "[::ffff:127.0.0.9]", "[::FFFF:7f00:9]"}) {
    CHECK_MESSAGE(host(text) == "127.0.0.9:443", std::string(text));
    CHECK_MESSAGE(domain(text) == "127.0.0.9:443", std::string(text));
    CHECK(std::get<destination>(parse_host(text, 443)).is_address());
  }
  CHECK(host("0") == "0.0.0.0:443");
}

TEST_CASE("a name that ends in a number but is no address is refused") {
  for (const std::string_view text : {"256.1.1.1", "1.2.3.4.5", "allowed.test.1", "allowed.test.0x7f", "08",
                                      "a.08", "4294967296", "0x100000000", "1.2.3.08", "allowed.test.1."})
    CHECK_MESSAGE(host(text) == "refused: the host name ends in a number but is no IPv4 address",
                  std::string(text));
  CHECK(host("127.0.0.1.nip.io") == "127.0.0.1.nip.io:443");
  CHECK(host("1.test") == "1.test:443");
  CHECK(host("test.0xg") == "test.0xg:443");
}

TEST_CASE("an IPv6 address stands in brackets, without a zone") {
  CHECK(host("[::1]") == "[::1]:443");
  CHECK(host("[2001:DB8:0::1]") == "[2001:db8::1]:443");
  CHECK(host("[::127.0.0.9]") == "[::7f00:9]:443");
  for (const std::string_view text :
       {"::1", "[::1", "::1]", "[]", "[", "]", "[::1].", "[::1]x", "[::1%lo]", "[fe80::1%25eth0]",
        "[127.0.0.1]", "[example.com]", "[[::1]]", "[v1.a]", "[ ::1]", "[::1]]", "[:]"})
    CHECK_MESSAGE(refused(host(text)), std::string(text));
}

TEST_CASE("an authority is a host and a port") {
  CHECK(authority("Example.com:443") == "example.com:443");
  CHECK(authority("example.com.:8443") == "example.com:8443");
  CHECK(authority("example.com", 80) == "example.com:80");
  CHECK(authority("example.com:8080", 80) == "example.com:8080");
  CHECK(authority("[::1]:443") == "[::1]:443");
  CHECK(authority("[::1]", 443) == "[::1]:443");
  CHECK(authority("127.1:1") == "127.0.0.1:1");
  CHECK(authority("example.com:65535") == "example.com:65535");
}

TEST_CASE("an authority without a usable port is refused") {
  CHECK(authority("example.com") == "refused: the port is missing");
  CHECK(authority("[::1]") == "refused: the port is missing");
  for (const std::string_view text : {"example.com:",
                                      "example.com:0",
                                      "example.com:65536",
                                      "example.com:99999",
                                      "example.com:443443443443",
                                      "example.com:-1",
                                      "example.com:+443",
                                      "example.com: 443",
                                      "example.com:443 ",
                                      "example.com:0443",
                                      "example.com:00",
                                      "example.com:0x1bb",
                                      "example.com:443x",
                                      "example.com:https",
                                      "example.com::443",
                                      "example.com:443:443",
                                      ":443",
                                      ":",
                                      "",
                                      "[::1]443",
                                      "[::1]:",
                                      "[::1]:0",
                                      "[::1",
                                      "::1:443",
                                      "2001:db8::1:443",
                                      "user@example.com:443",
                                      "user:word@example.com:443",
                                      "example.com:443@evil.test",
                                      "example.com:443/",
                                      "evil.test:443.allowed.test",
                                      "https://example.com:443",
                                      "example.com:443#",
                                      "example.com:\xef\xbc\x94",
                                      "*:443",
                                      "/x"}) {
    CHECK_MESSAGE(refused(authority(text)), std::string(text));
    CHECK_MESSAGE(refused(authority(text, 443)), std::string(text));
  }
  CHECK(refused(authority("example.com:443\0"s)));
  CHECK(refused(authority("example.com:\0"s + "443")));
  CHECK(refused(shown(parse_host("example.com", 0))));
}

TEST_CASE("a SOCKS domain name may be an address in any text, without brackets too") {
  CHECK(domain("Example.com.") == "example.com:443");
  CHECK(domain("::1") == "[::1]:443");
  CHECK(domain("[::1]") == "[::1]:443");
  CHECK(domain("::ffff:127.0.0.9") == "127.0.0.9:443");
  CHECK(domain("127.1") == "127.0.0.1:443");
  for (const std::string_view text : {"::1%lo", "::ffff:1.2.3.4%x.allowed.com", "::1.", "1::2::3", "a:b",
                                      "a:443", "[::1]:443", "example.com:443", ""})
    CHECK_MESSAGE(refused(domain(text)), std::string(text));
  CHECK(refused(shown(from_domain_name("::1", 0))));
  CHECK(refused(shown(from_domain_name("example.com", 0))));
}

TEST_CASE("the bytes of an address are that address") {
  CHECK(shown(from_address_bytes("\x7f\x00\x00\x09"s, 80)) == "127.0.0.9:80");
  CHECK(shown(from_address_bytes("\x7f\0\0\x09"s, 80)) == "127.0.0.9:80");
  CHECK(shown(from_address_bytes("\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\x09"s, 80)) == "127.0.0.9:80");
  CHECK(shown(from_address_bytes("\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\x01"s, 80)) == "[fe80::1]:80");
  for (const std::size_t size : {0u, 1u, 3u, 5u, 15u, 17u})
    CHECK(refused(shown(from_address_bytes(std::string(size, '\x01'), 80))));
  CHECK(refused(shown(from_address_bytes("\x7f\0\0\x09"s, 0))));
}

TEST_CASE("every protocol's spelling of a host is the same destination") {
  const auto v4 = std::get<destination>(from_address_bytes("\x7f\0\0\x09"s, 443));
  CHECK(std::get<destination>(parse_authority("0x7f.9:443", 0)) == v4);
  CHECK(std::get<destination>(from_domain_name("::ffff:7f00:9", 443)) == v4);
  CHECK(std::get<destination>(parse_host("2130706441", 443)) == v4);
  CHECK(std::get<destination>(parse_host("A.test.", 443)) ==
        std::get<destination>(from_domain_name("a.TEST", 443)));
}

TEST_CASE("every name of letters, digits and hyphens is itself") {
  std::mt19937 random(4);
  constexpr std::string_view alphabet = "abcdefghijklmnopqrstuvwxyz0123456789-";
  for (int i = 0; i < 20000; ++i) {
    std::string name;
    for (auto labels = 1 + random() % 4; labels > 0; --labels) {
      for (auto left = 1 + random() % 8; left > 0; --left)
        name += alphabet[random() % alphabet.size()];
      name += labels > 1 ? "." : "";
    }
    if (ends_in_number(name)) continue;
    REQUIRE(host(name) == name + ":443");
  }
}

TEST_CASE("what comes out goes in again and comes out the same") {
  std::mt19937 random(5);
  const std::vector<std::string> pieces = {
      "a",  "B",    ".", "..", "-",    "_",   "0",    "9",   "127", "0x7f", "256", ":", "[",    "]",
      "::", "ffff", "%", "@",  "\xc3", "443", "xn--", "com", "*",   "\0"s,  " ",   "/", "1.2.", "fe80"};
  std::size_t taken = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (auto left = 1 + random() % 7; left > 0; --left)
      text += pieces[random() % pieces.size()];
    for (const auto& result : {parse_host(text, 7), parse_authority(text, 7), from_domain_name(text, 7)}) {
      const auto* to = std::get_if<destination>(&result);
      if (to == nullptr) continue;
      ++taken;
      REQUIRE(to->port != 0);
      REQUIRE_MESSAGE(parse_authority(authority_text(*to), 0) == result, text);
      REQUIRE_MESSAGE(parse_host(host_text(*to), to->port) == result, text);
      REQUIRE_MESSAGE(from_domain_name(host_text(*to), to->port) == result, text);
      if (!to->is_address()) REQUIRE_FALSE(ends_in_number(to->name()));
    }
  }
  CHECK(taken > 1000);
}

TEST_CASE("the reason of a refusal is fixed text: it holds no byte of the input") {
  std::set<std::string> reasons;
  for (int byte = 0; byte < 256; ++byte)
    reasons.insert(host("a"s + static_cast<char>(byte) + "b"));
  for (const auto& reason : reasons)
    if (refused(reason))
      for (const char c : reason)
        CHECK((c >= ' ' && c <= '~'));
  CHECK(reasons.size() > 8);
}
