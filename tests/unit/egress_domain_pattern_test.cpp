#include "plugins/egress/domain_pattern.hpp"

#include <doctest/doctest.h>

#include <random>
#include <utility>
#include <vector>

using namespace ccbox::egress;
using form = domain_pattern::form;

namespace {

std::string shown(std::string_view text) {
  const auto result = parse_domain_pattern(text);
  if (const auto* bad = std::get_if<bad_pattern>(&result)) return "refused: " + bad->why;
  return to_string(std::get<domain_pattern>(result));
}

domain_pattern make(std::string_view text) {
  const auto result = parse_domain_pattern(text);
  const auto* pattern = std::get_if<domain_pattern>(&result);
  REQUIRE_MESSAGE(pattern != nullptr, shown(text));
  return *pattern;
}

bool refused(std::string_view text) {
  return std::holds_alternative<bad_pattern>(parse_domain_pattern(text));
}

}  // namespace

TEST_CASE("an entry is an exact name, all below a name, one label in the middle, or an address") {
  CHECK(make("api.example.com").shape == form::exact);
  CHECK(make("api.example.com").name == "api.example.com");
  CHECK(make("localhost").shape == form::exact);
  CHECK(make("*.example.com").shape == form::subdomains);
  CHECK(make("*.example.com").name == "example.com");
  CHECK(make("bedrock.*.amazonaws.com").shape == form::one_label);
  CHECK(make("bedrock.*.amazonaws.com").name == "bedrock");
  CHECK(make("bedrock.*.amazonaws.com").after == "amazonaws.com");
  CHECK(make("a.b.*.c.d.e").name == "a.b");
  CHECK(make("a.b.*.c.d.e").after == "c.d.e");
  CHECK(make("192.0.2.7").shape == form::address);
  CHECK(make("[2001:db8::7]").address == *parse_ip_address("2001:db8::7"));
  CHECK(make("[::ffff:192.0.2.7]") == make("192.0.2.7"));
  CHECK(make("xn--bcher-kva.de").name == "xn--bcher-kva.de");
  CHECK(make("my_host.a-b.test").name == "my_host.a-b.test");
}

TEST_CASE("an entry may name one port") {
  CHECK(make("example.com").port == 0);
  CHECK(make("example.com:8443").port == 8443);
  CHECK(make("*.example.com:22").port == 22);
  CHECK(make("a.*.example.com:65535").port == 65535);
  CHECK(make("192.0.2.7:1").port == 1);
  CHECK(make("[::1]:8080").port == 8080);
  for (const std::string_view text :
       {"example.com:", "example.com:0", "example.com:65536", "example.com:080", "example.com:-1",
        "example.com:+1", "example.com:80x", "example.com:*", "example.com:80:80", "example.com:80-90",
        "example.com:80,443", "example.com:https", "[::1]:", "[::1]:0", "[::1]80", ":80", "[::1]:80:80"})
    CHECK_MESSAGE(refused(text), std::string(text));
}

TEST_CASE("case and one trailing dot do not matter") {
  CHECK(make("API.Example.COM") == make("api.example.com"));
  CHECK(make("api.example.com.") == make("api.example.com"));
  CHECK(make("*.Example.com.:8443") == make("*.example.com:8443"));
  CHECK(make("A.*.Example.com.") == make("a.*.example.com"));
  CHECK(refused("example.com.."));
}

TEST_CASE("dead and dangerous entries are refused, each with its reason") {
  const std::pair<std::string_view, std::string_view> expected[] = {
      {"", "empty"},
      {" example.com", "space"},
      {"example.com ", "space"},
      {"exam ple.com", "space"},
      {"example.com\n", "space"},
      {"example\tcom", "space"},
      {"example.com\x01", "control"},
      {"https://example.com", "URL"},
      {"http://example.com/x", "URL"},
      {"example.com/path", "slash"},
      {"10.0.0.0/8", "address ranges"},
      {"user@example.com", "user name"},
      {"*", "everything"},
      {"*:443", "everything"},
      {"*.com", "only one label"},
      {"*.com.", "only one label"},
      {"*.localhost", "only one label"},
      {"a.*.com", "only one label"},
      {"a.*", "last label"},
      {"a.example.*", "last label"},
      {"*.", "last label"},
      {"*.*", "more than one *"},
      {"*.*.example.com", "more than one *"},
      {"**.example.com", "more than one *"},
      {"a.*.b.*.example.com", "more than one *"},
      {"*example.com", "part of a label"},
      {"foo*.example.com", "part of a label"},
      {"region*.v2.example.com", "part of a label"},
      {"a.*b.example.com", "part of a label"},
      {"10.0.0.*", "last label"},
      {"*.0.0.1", "address with a *"},
      {"10.*.0.1", "address with a *"},
      {"*.a.0x7f", "address with a *"},
      {".example.com", "label of the host name is empty"},
      {"a..example.com", "label of the host name is empty"},
      {"*..example.com", "label of the host name is empty"},
      {"*..com", "label of the host name is empty"},
      {".", "label of the host name is empty"},
      {"..", "label of the host name is empty"},
      {"a.*..com", "label of the host name is empty"},
      {"a,b.com", "letters, digits"},
      {"~example.com", "letters, digits"},
      {"example.com?", "URL"},
      {"2130706433", "write 127.0.0.1"},
      {"127.1", "write 127.0.0.1"},
      {"0x7f.0.0.1", "write 127.0.0.1"},
      {"010.0.0.1", "write 8.0.0.1"},
      {"256.0.0.1", "no IPv4 address"},
      {"example.1", "no IPv4 address"},
      {"::1", "brackets: [::1]"},
      {"2001:db8::7", "brackets: [2001:db8::7]"},
      {"[::1", "not closed"},
      {"[::1%lo]", "zone"},
      {"[127.0.0.1]", "no IPv6 address"},
      {"[*]", "no IPv6 address"},
  };
  for (const auto& [text, reason] : expected) {
    const auto result = shown(text);
    CHECK_MESSAGE(result.starts_with("refused: "), std::string(text));
    CHECK_MESSAGE(result.find(reason) != result.npos, (std::string(text) + " is " + result));
  }
  CHECK(refused(std::string_view("example.com\0", 12)));
}

TEST_CASE("an entry that no name can reach for its length is refused") {
  const std::string label(63, 'a');
  const auto long_name = label + "." + label + "." + label + "." + std::string(61, 'b');
  CHECK(make(long_name).name == long_name);
  CHECK(refused("b" + long_name));
  CHECK(refused("*." + long_name));
  CHECK_FALSE(refused("*." + long_name.substr(2)));
  CHECK(refused(label + "a.com"));
  CHECK(refused("*.com." + label + "a"));
}

TEST_CASE("an international name is refused with the form to write, where that is certain") {
  const std::pair<std::string_view, std::string_view> certain[] = {
      {"b\u00fccher.de", "write xn--bcher-kva.de"},
      {"B\u00fccher.DE", "write xn--bcher-kva.de"},
      {"*.b\u00fccher.de:8443", "write *.xn--bcher-kva.de:8443"},
      {"m\u00fcnchen.example", "write xn--mnchen-3ya.example"},
      {"\u043f\u0440\u0438\u043c\u0435\u0440.\u0438\u0441\u043f\u044b\u0442\u0430\u043d\u0438\u0435",
       "write xn--e1afmkfd.xn--80akhbyknj4f"},
      {"\u4f8b\u5b50.\u6d4b\u8bd5", "write xn--fsqu00a.xn--0zwm56d"},
      {"\u4f8b\u3048.\u30c6\u30b9\u30c8", "write xn--r8jz45g.xn--zckzah"},
      {"\ud2f0\uc2a4\ud2b8.com", "write xn--9t4b270a0e.com"},
      {"\u03b4\u03bf\u03ba\u03b9\u03bc\u03ae.com",
       "xn-- form"},  // the accent is a letter that is not in the list
      {"\u03b1\u03b2\u03b3.com", "write xn--mxacd.com"},
  };
  for (const auto& [text, advice] : certain) {
    const auto result = shown(text);
    CHECK_MESSAGE(result.find(advice) != result.npos, (std::string(text) + " is " + result));
  }
  for (const std::string_view text :
       {"B\u00dcCHER.de",    "stra\u00dfe.de",  "evil\u3002test",        "evil\uff0etest",
        "evil\uff61test",    "\uff45vil.test",  "e\u0301vil.test",       "evil\u00ad.test",
        "\u200bevil.test",   "\u00fc*.test",    "\u00fc..test",          "evil\xff.test",
        "\xe0\x80\xae.test", "\xc0\xae.test",   "\xf0\x80\x80\xae.test", "\xed\xa0\x80.test",
        "evil.test\xc3",     "\U0001f600.test", "\u00fc@a.test",         "*.\u4f8b"})
    CHECK_MESSAGE(shown(text) == "refused: it is not ASCII; write it in its xn-- form", std::string(text));
}

TEST_CASE("an entry that was written is read back as itself") {
  std::mt19937 random(6);
  const std::vector<std::string> pieces = {"a",       "B",    ".",        ".", "*.",  "*", "-", "_",
                                           "9",       "com",  "example",  ":", ":80", "[", "]", "::1",
                                           "1.2.3.4", ":443", "\xc3\xbc", "/", "@",   " "};
  std::size_t taken = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (auto left = 1 + random() % 7; left > 0; --left)
      text += pieces[random() % pieces.size()];
    const auto result = parse_domain_pattern(text);
    if (const auto* bad = std::get_if<bad_pattern>(&result)) {
      REQUIRE_MESSAGE(!bad->why.empty(), text);
      continue;
    }
    ++taken;
    const auto& pattern = std::get<domain_pattern>(result);
    REQUIRE_MESSAGE(make(to_string(pattern)) == pattern, text);
    REQUIRE(to_string(make(to_string(pattern))) == to_string(pattern));
  }
  CHECK(taken > 500);
}
