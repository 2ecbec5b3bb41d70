#include "plugins/egress/address.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <utility>

using namespace ccbox::egress;

namespace {

ip_address make(std::string_view text) {
  const auto address = parse_ip_address(text);
  REQUIRE_MESSAGE(address.has_value(), std::string(text));
  return *address;
}

address_range make_range(std::string_view text) {
  const auto range = parse_address_range(text);
  REQUIRE_MESSAGE(range.has_value(), std::string(text));
  return *range;
}

address_class class_of(std::string_view text) {
  return classify(make(text));
}

std::string loose(std::string_view text) {
  const auto address = parse_loose_ipv4(text);
  return address ? to_string(*address) : "none";
}

std::string with_v4(std::string_view prefix, std::uint32_t v4) {
  char groups[16];
  std::snprintf(groups, sizeof groups, "%x:%x", v4 >> 16, v4 & 0xffff);
  return std::string(prefix) + groups;
}

}  // namespace

TEST_CASE("an address in text is a dotted quad or IPv6 and nothing else") {
  CHECK(make("0.0.0.0").v4() == 0);
  CHECK(make("255.255.255.255").v4() == 0xffffffff);
  CHECK(make("192.0.2.7").v4() == 0xc0000207);
  CHECK(make("192.0.2.7").is_v4());
  CHECK_FALSE(make("::1").is_v4());
  for (const std::string_view bad : {"",
                                     ".",
                                     "1",
                                     "1.2.3",
                                     "1.2.3.4.",
                                     "1.2.3.4.5",
                                     "1..3.4",
                                     ".1.2.3",
                                     "256.1.1.1",
                                     "1.2.3.256",
                                     "01.2.3.4",
                                     "1.2.3.00",
                                     "0x7f.0.0.1",
                                     "1.2.3.4 ",
                                     " 1.2.3.4",
                                     "+1.2.3.4",
                                     "1.2.3.-4",
                                     "1.2.3.4/32",
                                     "2130706433",
                                     "127.1",
                                     ":",
                                     ":::",
                                     "1::2::3",
                                     "::12345",
                                     "1:2:3:4:5:6:7",
                                     "1:2:3:4:5:6:7:8:9",
                                     "[::1]",
                                     "::1%lo",
                                     "fe80::1%1",
                                     "::1 ",
                                     "::g",
                                     "::ffff:1.2.3",
                                     "::ffff:01.2.3.4",
                                     "::ffff:256.0.0.1",
                                     "1.2.3.4::",
                                     "::1/128",
                                     "0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000"})
    CHECK_MESSAGE(!parse_ip_address(bad), std::string(bad));
  CHECK_FALSE(parse_ip_address(std::string_view("127.0.0.1\0", 10)));
  CHECK_FALSE(parse_ip_address(std::string_view("::1\0", 4)));
  CHECK_FALSE(parse_ip_address(std::string_view("::1\0.allowed.test", 17)));
}

TEST_CASE("an IPv4 address that is mapped into IPv6 is that IPv4 address") {
  CHECK(make("::ffff:127.0.0.9") == make("127.0.0.9"));
  CHECK(make("::ffff:7f00:9") == make("127.0.0.9"));
  CHECK(make("0:0:0:0:0:FFFF:7F00:0009") == make("127.0.0.9"));
  CHECK(to_string(make("::ffff:7f00:9")) == "127.0.0.9");
}

TEST_CASE("addresses are written as RFC 5952 says") {
  const std::pair<std::string_view, std::string_view> written[] = {
      {"::", "::"},
      {"::1", "::1"},
      {"2001:DB8:0:0:0:0:0:1", "2001:db8::1"},
      {"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
      {"2001:0:0:1:0:0:0:1", "2001:0:0:1::1"},
      {"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
      {"1:2:3:4:5:6:0:0", "1:2:3:4:5:6::"},
      {"0:0:3:4:5:6:7:8", "::3:4:5:6:7:8"},
      {"1:0:0:4:5:6:7:8", "1::4:5:6:7:8"},
      {"::127.0.0.9", "::7f00:9"},
      {"64:ff9b::192.0.2.1", "64:ff9b::c000:201"},
      {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
  };
  for (const auto& [text, canonical] : written)
    CHECK(to_string(make(text)) == canonical);
}

TEST_CASE("an address that was written is read back as itself") {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    ip_address address = ip_address::from_v4(static_cast<std::uint32_t>(random()));
    if (i % 4 != 0)
      for (auto& byte : address.bytes)
        byte = random() % 3 != 0 ? 0 : static_cast<std::uint8_t>(random());
    const auto text = to_string(address);
    const auto again = parse_ip_address(text);
    REQUIRE_MESSAGE(again, text);
    REQUIRE_MESSAGE(*again == address, text);
    REQUIRE(to_string(*again) == text);
  }
}

TEST_CASE("every IPv4 spelling that a URL parser takes is the address that it reaches") {
  for (const std::string_view spelled :
       {"127.0.0.9", "127.0.9", "127.9", "2130706441", "0x7f000009", "0X7F000009", "017700000011",
        "0177.0.0.011", "0x7f.0.0.9", "0x7f.0x0.0x0.0x9", "0x7f.9", "127.0.0.9.", "0177.0.9",
        "00000177.0.0.9", "0x000000007f.9"})
    CHECK_MESSAGE(loose(spelled) == "127.0.0.9", std::string(spelled));
  CHECK(loose("0") == "0.0.0.0");
  CHECK(loose("0x") == "0.0.0.0");
  CHECK(loose("127.1") == "127.0.0.1");
  CHECK(loose("017700000001") == "127.0.0.1");
  CHECK(loose("2852039166") == "169.254.169.254");
  CHECK(loose("0xa9fea9fe") == "169.254.169.254");
  CHECK(loose("0251.0376.0251.0376") == "169.254.169.254");
  CHECK(loose("4294967295") == "255.255.255.255");
  CHECK(loose("1.16777215") == "1.255.255.255");
  CHECK(loose("1.2.65535") == "1.2.255.255");
}

TEST_CASE("what no URL parser takes for IPv4 is none") {
  for (const std::string_view bad : {"",
                                     ".",
                                     "..",
                                     "1..",
                                     "1.2.3.4..",
                                     "1.2.3.4.5",
                                     "1.2.3.256",
                                     "1.2.65536",
                                     "1.16777216",
                                     "4294967296",
                                     "256.1",
                                     "99999999999999999999999999999999",
                                     "0xfffffffffffffffff",
                                     "08",
                                     "0179.1",
                                     "0x7g",
                                     "1.2.3.x",
                                     "a.1",
                                     ".1",
                                     "1.",
                                     "-1",
                                     "+1",
                                     " 1",
                                     "1 ",
                                     "1e3",
                                     "1_000",
                                     "0b1"})
    if (bad != "1.") CHECK_MESSAGE(loose(bad) == "none", std::string(bad));
  CHECK(loose("1.") == "0.0.0.1");
}

TEST_CASE("a name whose last label is a number ends in a number, well-formed or not") {
  for (const std::string_view text :
       {"1", "a.1", "a.b.08", "a.0x", "a.0x7f", "a.0XaB", "1.2.3.4.5", "1.", "a.1."})
    CHECK_MESSAGE(ends_in_number(text), std::string(text));
  for (const std::string_view text : {"", ".", "a", "1.a", "a.0xg", "a.1b", "a.-1", "1..", "0x.a", "a.x0"})
    CHECK_MESSAGE(!ends_in_number(text), std::string(text));
}

TEST_CASE("what the loose rule reads ends in a number") {
  std::mt19937 random(2);
  constexpr std::string_view alphabet = "0123456789..xXaf";
  for (int i = 0; i < 50000; ++i) {
    std::string text;
    for (auto left = random() % 12; left > 0; --left)
      text += alphabet[random() % alphabet.size()];
    if (parse_loose_ipv4(text)) REQUIRE_MESSAGE(ends_in_number(text), text);
    if (const auto strict = parse_ip_address(text)) REQUIRE_MESSAGE(parse_loose_ipv4(text) == strict, text);
  }
}

TEST_CASE("every range of special addresses has its class, from its first address to its last") {
  struct expected {
    std::string_view range;
    address_class kind;
  };
  const expected table[] = {
      {"0.0.0.0/8", address_class::unspecified},      {"10.0.0.0/8", address_class::private_use},
      {"100.64.0.0/11", address_class::shared},  // the metadata address is in the other half
      {"127.0.0.0/8", address_class::loopback},       {"169.254.0.0/16", address_class::metadata},
      {"172.16.0.0/12", address_class::private_use},  {"192.0.0.0/25", address_class::reserved},
      {"192.0.2.0/24", address_class::reserved},      {"192.88.99.0/24", address_class::reserved},
      {"192.168.0.0/16", address_class::private_use}, {"198.18.0.0/15", address_class::benchmark},
      {"198.51.100.0/24", address_class::reserved},   {"203.0.113.0/24", address_class::reserved},
      {"224.0.0.0/4", address_class::multicast},      {"240.0.0.0/4", address_class::reserved},
      {"::/128", address_class::unspecified},         {"::1/128", address_class::loopback},
      {"100::/64", address_class::reserved},          {"200::/7", address_class::reserved},
      {"2001:1::/32", address_class::reserved},       {"2001:db8::/32", address_class::reserved},
      {"3fff::/20", address_class::reserved},         {"4000::/3", address_class::reserved},
      {"5f00::/16", address_class::reserved},         {"fc00::/8", address_class::private_use},
      {"fd12:3456::/32", address_class::private_use}, {"fd00:ec2::/32", address_class::metadata},
      {"fe80::/10", address_class::link_local},       {"fec0::/10", address_class::private_use},
      {"ff00::/8", address_class::multicast},
  };
  for (const auto& [text, kind] : table) {
    const auto range = make_range(text);
    auto last = range.first;
    for (unsigned bit = range.prefix_bits; bit < 128; ++bit)
      last.bytes[bit / 8] = static_cast<std::uint8_t>(last.bytes[bit / 8] | 0x80U >> bit % 8);
    CHECK_MESSAGE(classify(range.first) == kind, std::string(text));
    CHECK_MESSAGE(classify(last) == kind, to_string(last));
  }
}

TEST_CASE("the neighbours of the special ranges are public") {
  for (const std::string_view text :
       {"1.0.0.0",         "9.255.255.255", "11.0.0.0",        "100.63.255.255",  "100.128.0.0",
        "126.255.255.255", "128.0.0.0",     "169.253.255.255", "169.255.0.0",     "172.15.255.255",
        "172.32.0.0",      "192.0.1.255",   "192.0.3.0",       "192.167.255.255", "192.169.0.0",
        "198.17.255.255",  "198.20.0.0",    "223.255.255.255", "168.63.129.15",   "168.63.129.17",
        "140.82.112.3",    "2001:200::",    "2606:4700::1111", "2001:db7:ffff::", "2001:db9::",
        "2003::",          "3ffe:ffff::",   "64:ff9b::8.8.8.8"})
    CHECK_MESSAGE(class_of(text) == address_class::global, std::string(text));
}

TEST_CASE("the metadata service of every cloud is in the floor") {
  for (const std::string_view text :
       {"169.254.169.254", "169.254.170.2", "169.254.170.23", "169.254.42.42", "100.100.100.200",
        "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:c1::a9fe:a9fe",
        "fd00:42::42", "fd00:a9fe:a9fe::1", "fd00:100::100:200"})
    CHECK_MESSAGE(class_of(text) == address_class::metadata, std::string(text));
}

TEST_CASE("an IPv6 address is as bad as the IPv4 address that it embeds") {
  const std::pair<std::uint32_t, address_class> inner[] = {
      {0xa9fea9fe, address_class::metadata},    {0x646464c8, address_class::metadata},
      {0xa83f8110, address_class::metadata},    {0xc00000c0, address_class::metadata},
      {0x7f000009, address_class::loopback},    {0x0a000001, address_class::private_use},
      {0xc0a80101, address_class::private_use}, {0x64400001, address_class::shared},
      {0xc6120001, address_class::benchmark},   {0xe0000001, address_class::multicast},
  };
  for (const auto& [v4, kind] : inner) {
    const auto high = v4 >> 16, low = v4 & 0xffff;
    char text[64];
    const auto check = [&](const std::string& spelled) {
      CHECK_MESSAGE(class_of(spelled) == kind, spelled);
      CHECK_MESSAGE(in_range(make(spelled), {ip_address::from_v4(v4), 128}), spelled);
    };
    check(with_v4("::ffff:", v4));
    check(with_v4("::", v4));
    check(with_v4("::ffff:0:", v4));
    check(with_v4("64:ff9b::", v4));
    check(with_v4("64:ff9b:1::", v4));
    check(with_v4("64:ff9b:1:abcd:ef01:2345:", v4));
    std::snprintf(text, sizeof text, "2002:%x:%x::1", high, low);
    check(text);
    check(with_v4("2001:0:808:808::", ~v4));  // Teredo: the client
    std::snprintf(text, sizeof text, "2001:0:%x:%x::8.8.8.8", high, low);
    check(text);
    check(with_v4("2606:4700::5efe:", v4));      // ISATAP
    check(with_v4("2606:4700::200:5efe:", v4));  // and with the universal bit
    // The three other lengths that a NAT64 prefix of one's own may have.
    std::snprintf(text, sizeof text, "64:ff9b:1:%x:%x:%x::", high, low >> 8, (low & 0xff) << 8);
    check(text);
    std::snprintf(text, sizeof text, "64:ff9b:1:ff%02x:%x:%x::", high >> 8, high & 0xff, low);
    check(text);
    std::snprintf(text, sizeof text, "64:ff9b:1:ffff:%x:%x:%x::", high >> 8, (high & 0xff) << 8 | low >> 8,
                  (low & 0xff) << 8);
    check(text);
  }
}

TEST_CASE("an IPv6 address that embeds a public one is judged by itself") {
  CHECK(class_of("64:ff9b::8.8.8.8") == address_class::global);
  CHECK(class_of("2606:4700::5efe:808:808") == address_class::global);
  CHECK(class_of("::8.8.8.8") == address_class::reserved);
  CHECK(class_of("2002:808:808::1") == address_class::reserved);
  CHECK(class_of("64:ff9b:1::8.8.8.8") == address_class::reserved);
  CHECK(embedded_in(make("::")).count == 0);
  CHECK(embedded_in(make("::1")).count == 0);
  CHECK(embedded_in(make("2606:4700::1111")).count == 0);
  CHECK(embedded_in(make("127.0.0.1")).count == 0);
}

TEST_CASE("no address embeds more than the list of its embedded addresses holds") {
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    ip_address address;
    for (auto& byte : address.bytes)
      byte = static_cast<std::uint8_t>(random());
    if (i % 2 == 0) {
      const auto site = make("64:ff9b:1::");
      std::copy_n(site.bytes.begin(), 6, address.bytes.begin());
    }
    if (i % 3 == 0) {
      address.bytes[8] = 2, address.bytes[9] = 0, address.bytes[10] = 0x5e, address.bytes[11] = 0xfe;
    }
    const auto inside = embedded_in(address);
    REQUIRE(inside.count <= inside.found.size());
    for (const auto& inner : inside)
      REQUIRE(inner.is_v4());
  }
}

TEST_CASE("a range is an address and a prefix with nothing behind it") {
  CHECK(make_range("10.0.0.0/8").contains(make("10.255.0.1")));
  CHECK_FALSE(make_range("10.0.0.0/8").contains(make("11.0.0.0")));
  CHECK(make_range("10.0.0.0/9").contains(make("10.127.255.255")));
  CHECK_FALSE(make_range("10.0.0.0/9").contains(make("10.128.0.0")));
  CHECK(make_range("192.0.2.7").contains(make("192.0.2.7")));
  CHECK_FALSE(make_range("192.0.2.7").contains(make("192.0.2.6")));
  CHECK(make_range("192.0.2.7/32").contains(make("::ffff:192.0.2.7")));
  CHECK(make_range("::ffff:10.0.0.0/104").contains(make("10.1.1.1")));
  CHECK(make_range("2001:db8::/32").contains(make("2001:db8:ffff::1")));
  CHECK_FALSE(make_range("2001:db8::/33").contains(make("2001:db8:8000::")));
  for (const std::string_view bad : {"",
                                     "/",
                                     "/8",
                                     "10.0.0.0/",
                                     "10.0.0.0/33",
                                     "10.0.0.0/08",
                                     "10.0.0.0/+8",
                                     "10.0.0.0/8/8",
                                     "10.0.0.1/8",
                                     "10.0/8",
                                     "::/129",
                                     "::1/0",
                                     "::1/127",
                                     "2001:db8::1/64",
                                     "10.0.0.0/-1",
                                     "10.0.0.0 /8",
                                     "[::1]/128",
                                     "example.com",
                                     "10.0.0.0-10.0.0.9",
                                     "10.0.0.*"})
    CHECK_MESSAGE(!parse_address_range(bad), std::string(bad));
}

TEST_CASE("a range of one family holds no address of the other") {
  CHECK(make_range("0.0.0.0/0").contains(make("8.8.8.8")));
  CHECK_FALSE(make_range("0.0.0.0/0").contains(make("2606:4700::1111")));
  CHECK(make_range("::/0").contains(make("2606:4700::1111")));
  CHECK_FALSE(make_range("::/0").contains(make("10.0.0.1")));
}

TEST_CASE("every class is spoken of in words of its own") {
  std::vector<std::string_view> texts;
  for (int kind = 0; kind <= static_cast<int>(address_class::reserved); ++kind)
    texts.push_back(to_string(static_cast<address_class>(kind)));
  std::sort(texts.begin(), texts.end());
  CHECK(std::adjacent_find(texts.begin(), texts.end()) == texts.end());
  CHECK(to_string(address_class::loopback) == "a loopback address");
}
