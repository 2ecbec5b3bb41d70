#include "plugins/egress/egress_policy.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>

#include "allocations.hpp"
#include "support/egress_rules.hpp"

using namespace ccbox::test;

namespace {

// The grammar of entries, word for word and slowly.
bool naive_match(std::string_view pattern, std::string_view name) {
  const auto star = pattern.find('*');
  if (star == pattern.npos) return pattern == name;
  const auto after = pattern.substr(star + 1);  // with its dot
  if (star == 0) return name.size() > after.size() && name.ends_with(after);
  const auto before = pattern.substr(0, star);  // with its dot
  if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after))
    return false;
  const auto middle = name.substr(before.size(), name.size() - before.size() - after.size());
  return middle.find('.') == middle.npos;
}

}  // namespace

TEST_CASE("what no rule allows is refused") {
  const auto policy = build({allow("allowed.test")});
  CHECK(decide(policy, "allowed.test") == "allowed");
  CHECK(decide(policy, "ALLOWED.Test.") == "allowed");
  for (const std::string_view other :
       {"evil.test", "evilallowed.test", "allowed.test.evil.test", "x.allowed.test", "allowed.tes",
        "llowed.test", "test", "notlocalhost"})
    CHECK_MESSAGE(decide(policy, other) == "blocked-by-allowlist", std::string(other));
}

TEST_CASE("an empty list, and one of denies alone, refuses everything") {
  for (const auto& policy : {build({}), build({deny("evil.test")}), build({resolved_range("10.0.0.0/8")})}) {
    CHECK(policy->empty());
    CHECK(decide(policy, "example.com") == "blocked-by-allowlist");
    CHECK(decide(policy, "localhost") == "resolved-address");
    CHECK(decide(policy, "8.8.8.8") == "ip-literal");
  }
  CHECK_FALSE(build({allow("example.com")})->empty());
}

TEST_CASE("names of this host are decided by where they always lead") {
  const auto closed = build({allow("localhost"), allow("x.localhost:8080"), deny("no.localhost")});
  for (const std::string_view name :
       {"localhost:80", "LOCALHOST.:443", "x.localhost:8080", "y.localhost:80"}) {
    CHECK_MESSAGE(decide(closed, name) == "resolved-address", std::string(name));
    const auto text = text_of(closed, name);
    CHECK_MESSAGE(contains(text, "it resolves to a loopback address"), text);
    CHECK_MESSAGE(contains(text, "--allow-domain 127.0.0.1:"), text);
    CHECK_MESSAGE(!contains(text, "--allow-domain localhost"), text);
  }
  CHECK(decide(closed, "no.localhost") == "blocked-by-denylist");
  const auto opened = build({allow("localhost:9000"), allow("127.0.0.1:9000"), allow("[::1]:9001")});
  CHECK(decide(opened, "localhost:9000") == "allowed");
  CHECK(decide(opened, "localhost:9001") == "port");
  CHECK(decide(opened, "localhost:9002") == "resolved-address");
  CHECK(decide(opened, "notlocalhost") == "blocked-by-allowlist");
}

TEST_CASE("a name below matches at any depth and the apex does not") {
  const auto policy = build({allow("*.example.com")});
  CHECK(decide(policy, "a.example.com") == "allowed");
  CHECK(decide(policy, "a.b.c.d.example.com") == "allowed");
  CHECK(decide(policy, "example.com") == "blocked-by-allowlist");
  CHECK(decide(policy, "evilexample.com") == "blocked-by-allowlist");
  CHECK(decide(policy, "a.example.com.evil.test") == "blocked-by-allowlist");
}

TEST_CASE("a star in the middle is exactly one label") {
  const auto policy = build({allow("bedrock.*.amazonaws.com"), allow("a.b.*.c.test")});
  CHECK(decide(policy, "bedrock.us-east-1.amazonaws.com") == "allowed");
  CHECK(decide(policy, "a.b.x.c.test") == "allowed");
  for (const std::string_view other :
       {"bedrock.evil.attacker.amazonaws.com", "bedrock.amazonaws.com", "x.bedrock.us-east-1.amazonaws.com",
        "bedrock-runtime.us-east-1.amazonaws.com", "us-east-1.amazonaws.com",
        "bedrock.us-east-1.amazonaws.com.evil.test", "b.x.c.test", "a.x.c.test", "a.b.c.test"})
    CHECK_MESSAGE(decide(policy, other) == "blocked-by-allowlist", std::string(other));
}

TEST_CASE("denying wins over allowing, whatever is longer and whatever came first") {
  for (const bool deny_last : {false, true}) {
    std::vector<rule> rules = {allow("*.githubusercontent.com"), allow("api.sentry.io"),
                               allow("statsig.com")};
    const std::vector<rule> denied = {deny("copilot-telemetry.githubusercontent.com"), deny("*.sentry.io"),
                                      deny("statsig.com"), deny("telemetry.*.githubusercontent.com")};
    rules.insert(deny_last ? rules.end() : rules.begin(), denied.begin(), denied.end());
    const auto policy = build(rules);
    CHECK(decide(policy, "raw.githubusercontent.com") == "allowed");
    CHECK(decide(policy, "copilot-telemetry.githubusercontent.com") == "blocked-by-denylist");
    CHECK(decide(policy, "COPILOT-telemetry.githubusercontent.COM.") == "blocked-by-denylist");
    CHECK(decide(policy, "telemetry.eu.githubusercontent.com") == "blocked-by-denylist");
    CHECK(decide(policy, "telemetry.a.b.githubusercontent.com") == "allowed");
    CHECK(decide(policy, "api.sentry.io") == "blocked-by-denylist");
    CHECK(decide(policy, "statsig.com") == "blocked-by-denylist");
    CHECK(decide(policy, "sentry.io") == "blocked-by-allowlist");
  }
}

TEST_CASE("a list in capitals is the same list") {
  const auto policy = build({allow("ALLOWED.Test"), allow("*.Sub.TEST"), deny("EVIL.sub.test")});
  CHECK(decide(policy, "allowed.test") == "allowed");
  CHECK(decide(policy, "a.sub.test") == "allowed");
  CHECK(decide(policy, "Evil.Sub.test") == "blocked-by-denylist");
}

TEST_CASE("an entry means ports 80 and 443, a git host's 22 too, and one that is written alone") {
  const auto policy =
      build({allow("web.test"), git("git.test"), allow("one.test:8443"), allow("two.test:1"),
             allow("two.test:2"), git("only.test:443"), allow("*.below.test"), allow("x.below.test:22")});
  CHECK(decide(policy, "web.test:80") == "allowed");
  CHECK(decide(policy, "web.test:443") == "allowed");
  CHECK(decide(policy, "web.test:22") == "port");
  CHECK(decide(policy, "web.test:8080") == "port");
  CHECK(decide(policy, "git.test:22") == "allowed");
  CHECK(decide(policy, "git.test:443") == "allowed");
  CHECK(decide(policy, "git.test:9418") == "port");
  CHECK(decide(policy, "one.test:8443") == "allowed");
  CHECK(decide(policy, "one.test:443") == "port");
  CHECK(decide(policy, "two.test:1") == "allowed");
  CHECK(decide(policy, "two.test:2") == "allowed");
  CHECK(decide(policy, "two.test:3") == "port");
  CHECK(decide(policy, "only.test:22") == "port");
  CHECK(decide(policy, "x.below.test:22") == "allowed");
  CHECK(decide(policy, "x.below.test:443") == "allowed");
  CHECK(decide(policy, "y.below.test:22") == "port");
}

TEST_CASE("a deny entry without a port denies every port, with one that port") {
  const auto policy = build({deny("all.test"), allow("all.test:8443"), deny("some.test:8443"),
                             allow("some.test:8443"), allow("some.test")});
  CHECK(decide(policy, "all.test:8443") == "blocked-by-denylist");
  CHECK(decide(policy, "all.test:443") == "blocked-by-denylist");
  CHECK(decide(policy, "some.test:8443") == "blocked-by-denylist");
  CHECK(decide(policy, "some.test:443") == "allowed");
}

TEST_CASE("an address is allowed only by an entry for that address and port") {
  const auto policy = build({allow("*.example.com"), allow("140.82.112.3"), allow("127.0.0.1:8080"),
                             allow("[2001:db8::7]:443"), deny("140.82.112.4"), allow("140.82.112.4")});
  CHECK(decide(policy, "140.82.112.3:443") == "allowed");
  CHECK(decide(policy, "140.82.112.3:22") == "port");
  CHECK(decide(policy, "[::ffff:140.82.112.3]:443") == "allowed");
  CHECK(decide(policy, "0x8c527003:443") == "allowed");
  CHECK(decide(policy, "140.82.112.4:443") == "blocked-by-denylist");
  CHECK(decide(policy, "[64:ff9b::140.82.112.4]:443") == "blocked-by-denylist");
  CHECK(decide(policy, "[64:ff9b::140.82.112.3]:443") == "ip-literal");
  CHECK(decide(policy, "140.82.112.5:443") == "ip-literal");
  CHECK(decide(policy, "127.0.0.1:8080") == "allowed");
  CHECK(decide(policy, "127.1:8080") == "allowed");
  CHECK(decide(policy, "127.0.0.2:8080") == "ip-literal");
  CHECK(decide(policy, "[::1]:8080") == "ip-literal");
  CHECK(decide(policy, "[2001:db8::7]:443") == "allowed");
  CHECK(decide(policy, "0.0.0.0:8080") == "ip-literal");
}

TEST_CASE("every spelling of a host has the decision of its canonical form") {
  const auto policy = build({allow("allowed.test"), allow("127.0.0.9:443")});
  for (const std::string_view spelled :
       {"127.1", "0x7f.1", "2130706433", "0177.0.0.1", "[::ffff:127.0.0.1]", "127.0.0.1."})
    CHECK_MESSAGE(decide(policy, spelled) == decide(policy, "127.0.0.1"), std::string(spelled));
  for (const std::string_view spelled : {"127.9", "0x7f.9", "2130706441", "0177.0.0.011", "[::ffff:7f00:9]"})
    CHECK_MESSAGE(decide(policy, spelled) == "allowed", std::string(spelled));
}

TEST_CASE("nothing opens the metadata services, neither by address nor in any spelling nor by name") {
  std::vector<rule> rules = {resolved_range("169.254.0.0/16"), resolved_range("fd00::/8"),
                             resolved_range("0.0.0.0/0"), resolved_range("::/0")};
  const std::vector<std::string> addresses = {"169.254.169.254",
                                              "169.254.170.2",
                                              "169.254.42.42",
                                              "100.100.100.200",
                                              "168.63.129.16",
                                              "192.0.0.192",
                                              "[fd00:ec2::254]",
                                              "[fd20:ce::254]",
                                              "[fd00:c1::a9fe:a9fe]",
                                              "[fd00:42::42]",
                                              "[fd00:a9fe:a9fe::1]",
                                              "[fd00:100::100:200]",
                                              "[64:ff9b::169.254.169.254]",
                                              "[2002:a9fe:a9fe::1]",
                                              "[::169.254.169.254]"};
  const std::vector<std::string> names = {"metadata",
                                          "metadata.google.internal",
                                          "metadata.goog",
                                          "metadata.azure.com",
                                          "metadata.azure.internal",
                                          "instance-data",
                                          "instance-data.ec2.internal",
                                          "metadata.tencentyun.com",
                                          "metadata.packet.net"};
  for (const auto& host : addresses)
    for (const auto* port : {"", ":80"})
      rules.push_back(allow(host + port));
  for (const auto& host : names)
    rules.push_back(allow(host));
  rules.push_back(allow("open.test"));
  const auto policy = build(rules);
  for (const auto& host : addresses) {
    CHECK_MESSAGE(decide(policy, host + ":80") == "blocked-by-denylist", host);
    const auto literal = to(host + ":80");
    CHECK_MESSAGE(verdict(policy->permits(literal, literal.address())) == "resolved-address", host);
    CHECK_MESSAGE(verdict(policy->permits(to("open.test"), literal.address())) == "resolved-address", host);
  }
  for (const auto& host : names)
    CHECK_MESSAGE(decide(policy, host + ":80") == "blocked-by-denylist", host);
  CHECK(decide(policy, "169.254.169.254.nip.io") == "blocked-by-allowlist");
  CHECK(decide(policy, "2852039166:80") == "blocked-by-denylist");
}

TEST_CASE("a floor of the configuration is as firm as the one built in") {
  const auto policy =
      build({floor_range("203.0.113.0/24"), floor_range("93.184.0.0/16"), allow("93.184.216.34:443"),
             allow("open.test"), resolved_range("203.0.113.0/24")});
  CHECK(decide(policy, "93.184.216.34:443") == "blocked-by-denylist");
  CHECK(permits(policy, "open.test", "93.184.0.1") == "resolved-address");
  CHECK(permits(policy, "open.test", "64:ff9b::93.184.0.1") == "resolved-address");
  CHECK(permits(policy, "open.test", "203.0.113.7") == "resolved-address");
  CHECK(permits(policy, "open.test", "93.185.0.1") == "allowed");
  CHECK(decide(policy, "169.254.169.254:80") == "blocked-by-denylist");
}

TEST_CASE("a name may resolve into public addresses only") {
  const auto policy = build({allow("open.test")});
  CHECK(permits(policy, "open.test", "93.184.216.34") == "allowed");
  CHECK(permits(policy, "open.test", "2606:4700::1111") == "allowed");
  CHECK(permits(policy, "open.test", "64:ff9b::93.184.216.34") == "allowed");
  for (const std::string_view address : {"127.0.0.9",
                                         "127.0.0.1",
                                         "::1",
                                         "0.0.0.0",
                                         "::",
                                         "169.254.1.1",
                                         "10.9.9.9",
                                         "172.16.0.1",
                                         "192.168.1.1",
                                         "100.64.0.1",
                                         "198.18.0.1",
                                         "224.0.0.1",
                                         "255.255.255.255",
                                         "fe80::1",
                                         "fd12::1",
                                         "fec0::1",
                                         "ff02::1",
                                         "::ffff:127.0.0.9",
                                         "::127.0.0.9",
                                         "64:ff9b::7f00:9",
                                         "64:ff9b:1::7f00:9",
                                         "2002:7f00:9::1",
                                         "2001:0:5ef5:79fd::80ff:fff6",
                                         "2606:4700::5efe:7f00:9",
                                         "192.0.2.1",
                                         "2001:db8::1"})
    CHECK_MESSAGE(permits(policy, "open.test", address) == "resolved-address", std::string(address));
}

TEST_CASE("a range that names may resolve into lifts the rule for that range") {
  const auto policy =
      build({allow("open.test"), resolved_range("198.18.0.0/15"), resolved_range("10.0.0.0/8"),
             resolved_range("10.1.0.0/16"), resolved_range("fd00::/8"), deny("10.6.6.6")});
  CHECK(permits(policy, "open.test", "198.18.5.5") == "allowed");
  CHECK(permits(policy, "open.test", "10.0.0.1") == "allowed");
  CHECK(permits(policy, "open.test", "10.1.0.1") == "allowed");
  CHECK(permits(policy, "open.test", "10.255.255.255") == "allowed");
  CHECK(permits(policy, "open.test", "fd12::1") == "allowed");
  CHECK(permits(policy, "open.test", "11.0.0.1") == "allowed");
  CHECK(permits(policy, "open.test", "192.168.0.1") == "resolved-address");
  CHECK(permits(policy, "open.test", "127.0.0.1") == "resolved-address");
  CHECK(permits(policy, "open.test", "10.6.6.6") == "resolved-address");
  CHECK(permits(policy, "open.test", "fd00:ec2::254") == "resolved-address");
  // In the range by its front, on loopback by what it carries.
  CHECK(permits(policy, "open.test", "fd12::5efe:127.0.0.1") == "resolved-address");
  CHECK(permits(policy, "open.test", "fd12::5efe:10.0.0.1") == "allowed");
  CHECK(decide(policy, "10.0.0.1") == "ip-literal");
}

TEST_CASE("a range of all IPv6 addresses lifts nothing for IPv4, beside any others") {
  const auto policy = build({allow("open.test"), resolved_range("::/0"), resolved_range("10.0.0.0/8")});
  CHECK(permits(policy, "open.test", "fe80::1") == "allowed");
  CHECK(permits(policy, "open.test", "2001:db8::1") == "allowed");
  CHECK(permits(policy, "open.test", "10.0.0.1") == "allowed");
  CHECK(permits(policy, "open.test", "192.168.0.1") == "resolved-address");
  CHECK(permits(policy, "open.test", "::127.0.0.1") == "resolved-address");
}

TEST_CASE("an entry for an address and port lifts the rule for it, and only for it") {
  const auto policy = build({allow("push.test:9000"), allow("127.0.0.1:9000"), allow("10.0.0.5")});
  CHECK(permits(policy, "push.test:9000", "127.0.0.1") == "allowed");
  CHECK(permits(policy, "127.0.0.1:9000", "127.0.0.1") == "allowed");
  CHECK(permits(policy, "push.test:9001", "127.0.0.1") == "resolved-address");
  CHECK(permits(policy, "push.test:9000", "127.0.0.2") == "resolved-address");
  CHECK(permits(policy, "push.test:9000", "::1") == "resolved-address");
  CHECK(permits(policy, "10.0.0.5:443", "10.0.0.5") == "allowed");
  CHECK(permits(policy, "push.test:9000", "10.0.0.5") == "resolved-address");
}

TEST_CASE("denying an address denies it behind a name, too") {
  const auto policy = build({allow("open.test"), deny("93.184.216.34"), deny("93.184.216.35:80")});
  CHECK(permits(policy, "open.test", "93.184.216.34") == "resolved-address");
  CHECK(permits(policy, "open.test", "64:ff9b::93.184.216.34") == "resolved-address");
  CHECK(permits(policy, "open.test:443", "93.184.216.35") == "allowed");
  CHECK(permits(policy, "open.test:80", "93.184.216.35") == "resolved-address");
}

TEST_CASE("the class of what a name resolves to goes with the decision") {
  const auto policy = build({allow("open.test")});
  CHECK(policy->permits(to("open.test"), *parse_ip_address("127.0.0.1")).found == address_class::loopback);
  CHECK(policy->permits(to("open.test"), *parse_ip_address("169.254.169.254")).found ==
        address_class::metadata);
  CHECK(policy->permits(to("open.test"), *parse_ip_address("8.8.8.8")).found == address_class::global);
}

TEST_CASE("the rule that decided goes with the decision") {
  const auto policy =
      build({allow("*.example.com", "baseline.x"), deny("bad.example.com", "fixed"), git("git.test")});
  CHECK(policy->decide(to("a.example.com")).by->origin == "baseline.x");
  CHECK(policy->decide(to("bad.example.com")).by->origin == "fixed");
  CHECK(policy->decide(to("a.example.com:1")).by->origin == "baseline.x");
  CHECK(policy->decide(to("evil.test")).by == nullptr);
  CHECK(policy->decide(to("169.254.169.254")).by->action == rule_action::floor);
  CHECK(policy->rule_count() == 3);
}

TEST_CASE("a bad rule is refused with its place and nothing is built") {
  const std::pair<rule, std::string_view> bad[] = {
      {allow("*"), "everything"},
      {deny("*.com"), "one label"},
      {allow("b\u00fccher.de"), "xn--bcher-kva.de"},
      {floor_range("10.0.0.1/8"), "range"},
      {resolved_range("example.com"), "range"},
      {resolved_range(""), "range"},
  };
  for (const auto& [one, why] : bad) {
    const auto result = egress_policy::build({allow("good.test"), one, allow("good2.test")});
    const auto* refused = std::get_if<bad_rule>(&result);
    REQUIRE(refused != nullptr);
    CHECK(refused->index == 1);
    CHECK_MESSAGE(contains(refused->why, why), refused->why);
    CHECK(egress_policy::check(one) == refused->why);
  }
  for (const auto& good : {allow("*.good.test:8443"), deny("good.test"), floor_range("10.0.0.0/8")})
    CHECK(egress_policy::check(good).empty());
}

TEST_CASE("equal lists share one policy, and others do not") {
  const auto one = build({allow("shared.test"), deny("x.test")});
  CHECK(build({allow("shared.test"), deny("x.test")}) == one);
  CHECK(build({allow("shared.test"), deny("x.test", "elsewhere")}) != one);
  CHECK(build({deny("shared.test"), deny("x.test")}) != one);
  auto as_git = allow("shared.test");
  as_git.git_host = true;
  CHECK(build({as_git, deny("x.test")}) != one);
}

TEST_CASE("a destination that no parser made is malformed") {
  const auto policy = build({allow("open.test")});
  CHECK(verdict(policy->decide({std::string(), 443})) == "malformed");
  CHECK(verdict(policy->decide({std::string(254, 'a'), 443})) == "malformed");
  CHECK(verdict(policy->decide({std::string("open.test"), 0})) == "malformed");
}

TEST_CASE("random lists decide as the grammar read word for word") {
  std::mt19937 random(7);
  const std::vector<std::string> labels = {"a", "b", "c", "aa", "x-1", "com", "test"};
  const auto label = [&] { return labels[random() % labels.size()]; };
  const auto dotted = [&](std::size_t count) {
    std::string out = label();
    for (std::size_t i = 1; i < count; ++i)
      out += "." + label();
    return out;
  };
  for (int round = 0; round < 60; ++round) {
    std::vector<rule> rules;
    for (auto left = random() % 30; left > 0; --left) {
      auto pattern = dotted(1 + random() % 4);
      if (random() % 3 == 0) pattern = "*." + dotted(2 + random() % 2);
      if (random() % 3 == 0) pattern = dotted(1 + random() % 2) + ".*." + dotted(2 + random() % 2);
      if (random() % 3 == 0) pattern += random() % 2 == 0 ? ":443" : ":8443";
      rules.push_back(random() % 4 == 0 ? deny(pattern) : allow(pattern));
      rules.back().git_host = random() % 4 == 0;
    }
    const auto policy = build(rules);
    for (int i = 0; i < 200; ++i) {
      const auto name = dotted(1 + random() % 6);
      const std::uint16_t port = std::array<std::uint16_t, 4>{80, 443, 22, 8443}[random() % 4];
      std::string expected = "blocked-by-allowlist";
      for (const auto& one : rules) {
        const auto colon = one.pattern.find(':');
        if (!naive_match(one.pattern.substr(0, colon), name)) continue;
        const bool is_deny = one.action == rule_action::deny;
        const int only = colon == std::string::npos ? 0 : std::stoi(one.pattern.substr(colon + 1));
        const bool port_fits =
            only != 0 ? only == port : is_deny || port == 80 || port == 443 || (one.git_host && port == 22);
        if (is_deny && port_fits) expected = "blocked-by-denylist";
        if (is_deny || expected == "blocked-by-denylist") continue;
        if (port_fits) expected = "allowed";
        if (expected != "allowed") expected = "port";
      }
      REQUIRE_MESSAGE(verdict(policy->decide({name, port})) == expected, name);
    }
  }
}

TEST_CASE("every name of letters, digits and hyphens is matched by itself and by nothing near it") {
  std::mt19937 random(8);
  constexpr std::string_view alphabet = "abcdefghijklmnopqrstuvwxyz0123456789-";
  std::vector<rule> rules;
  std::set<std::string> names;
  while (names.size() < 5000) {
    std::string name;
    for (auto labels = 1 + random() % 4; labels > 0; --labels) {
      for (auto left = 1 + random() % 20; left > 0; --left)
        name += alphabet[random() % alphabet.size()];
      name += labels > 1 ? "." : "";
    }
    if (!ends_in_number(name)) names.insert(name);
  }
  for (const auto& name : names)
    rules.push_back(allow(name));
  const auto policy = build(rules);
  for (const auto& name : names) {
    REQUIRE(decide(policy, name) == "allowed");
    std::string shouted = name + ".";
    std::transform(shouted.begin(), shouted.end(), shouted.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    REQUIRE(decide(policy, shouted) == "allowed");
    for (const auto& near : {"x" + name, name + "x", "x." + name, name + ".x"})
      if (!names.contains(near) && near.find('.') != 0)
        REQUIRE_MESSAGE(policy->decide({near, 443}).allowed == false, near);
  }
}

TEST_CASE("names of the greatest depth are decided") {
  std::string deep;
  for (int i = 0; i < 126; ++i)
    deep += "a.";
  deep += "a";
  const auto policy = build({allow("*.a.a"), deny("*." + deep.substr(4)), allow("a.*.b.c")});
  CHECK(decide(policy, deep) == "blocked-by-denylist");
  CHECK(decide(policy, deep.substr(2)) == "blocked-by-denylist");
  CHECK(decide(policy, deep.substr(4)) == "allowed");
}

TEST_CASE("allowing allocates nothing, on a list of ten thousand entries of all kinds") {
  std::vector<rule> rules;
  for (int i = 0; i < 10000; ++i) {
    const auto n = std::to_string(i);
    switch (i % 4) {
      case 0:
        rules.push_back(allow("host" + n + ".example.com"));
        break;
      case 1:
        rules.push_back(allow("*.zone" + n + ".example.com"));
        break;
      case 2:
        rules.push_back(allow("svc" + n + ".*.example.com"));
        break;
      default:
        rules.push_back(allow("10.0." + std::to_string(i / 256) + "." + std::to_string(i % 256)));
    }
  }
  const auto policy = build(rules);
  for (const std::string_view authority :
       {"host8.example.com:443", "a.b.zone9.example.com:443", "svc10.eu.example.com:443", "10.0.0.3:443"}) {
    const auto there = to(authority);
    const auto before = allocations_of_this_thread();
    const auto d = policy->decide(there);
    const auto after = allocations_of_this_thread();
    CHECK_MESSAGE(d.allowed, std::string(authority));
    CHECK_MESSAGE(before == after, std::string(authority));
  }
}
