// The sentences in which the proxies tell people what they refuse.
#include <doctest/doctest.h>

#include <array>
#include <set>

#include "support/egress_rules.hpp"

using namespace ccbox::test;

TEST_CASE("the sentence for a name that no rule allows names it and the way to allow it") {
  const auto policy = build({allow("good.test")});
  CHECK(text_of(policy, "Evil.Test:443") ==
        "evil.test:443 is refused: no rule allows it; allow it with --allow-domain evil.test or "
        "egressAllowlist");
  CHECK(contains(text_of(policy, "evil.test:8080"), "--allow-domain evil.test:8080 or egressAllowlist"));
  const auto nothing = text_of(build({}), "evil.test:443");
  CHECK(contains(nothing, "may reach nothing"));
  // Why the list is empty is known outside: by a file or because the network is off.
  CHECK_FALSE(contains(nothing, "network"));
  CHECK_FALSE(contains(nothing, "--allow-domain"));
}

TEST_CASE("the sentence for a name whose names below are allowed says so") {
  const auto policy = build({allow("*.example.com", "egressAllowlist"), allow("a.*.example.net")});
  CHECK(text_of(policy, "example.com") ==
        "example.com:443 is refused: the rule *.example.com (egressAllowlist) allows the names below it, not "
        "itself; allow it with --allow-domain example.com or egressAllowlist");
  CHECK(contains(text_of(policy, "example.com:8080"), "no rule allows it"));
  CHECK(contains(text_of(policy, "example.net"), "no rule allows it"));
}

TEST_CASE("the sentence for a wrong port names the rule, its ports and the way to allow this one") {
  const auto policy = build({allow("web.test", "baseline.web"), git("git.test"), allow("one.test:8443")});
  CHECK(text_of(policy, "web.test:22") ==
        "web.test:22 is refused: the rule web.test (baseline.web) allows it on ports 80 and 443 only; allow "
        "it with "
        "--allow-domain web.test:22 or egressAllowlist");
  CHECK(contains(text_of(policy, "git.test:9418"), "ports 22, 80 and 443 only"));
  CHECK(contains(text_of(policy, "one.test:443"), "port 8443 only"));
  CHECK(contains(text_of(policy, "one.test:443"), "--allow-domain one.test:443"));
}

TEST_CASE("the sentence for an address says that names do not cover it") {
  const auto text = text_of(build({allow("github.com")}), "140.82.112.3:443");
  CHECK(contains(text, "140.82.112.3:443 is refused: it is an address"));
  CHECK(contains(text, "by its name"));
  CHECK(contains(text, "--allow-domain 140.82.112.3:443 or egressAllowlist"));
  CHECK(contains(text_of(build({}), "[::1]:8080"), "--allow-domain [::1]:8080"));
}

TEST_CASE("the sentence for a denied name gives the rule, and does not suggest to allow the name") {
  const auto text =
      text_of(build({allow("*.sentry.io"), deny("*.sentry.io", "deny.telemetry")}), "a.sentry.io:443");
  CHECK(contains(text, "the rule *.sentry.io (deny.telemetry) denies it: it is a telemetry sink"));
  CHECK_FALSE(contains(text, "--allow-domain"));
}

TEST_CASE("no sentence suggests to lift the metadata floor") {
  const auto policy = build({allow("open.test"), allow("metadata")});
  for (const auto& text :
       {text_of(policy, "169.254.169.254:80"), text_of(policy, "[fd00:ec2::254]:80"),
        text_of(policy, "metadata:80"), resolved_text(policy, "open.test", "169.254.169.254"),
        resolved_text(policy, "open.test", "64:ff9b::a9fe:a9fe")}) {
    CHECK_MESSAGE(contains(text, "nothing opens"), text);
    CHECK_MESSAGE(contains(text, "environment or in a file"), text);
    CHECK_MESSAGE(!contains(text, "--allow-domain"), text);
    CHECK_MESSAGE(!contains(text, "configuration"), text);
  }
}

TEST_CASE("an address that a name resolves to is not told, its class is") {
  const auto policy = build(
      {allow("open.test"), floor_range("203.0.113.7"), deny("203.0.113.8"), floor_range("93.184.0.0/16")});
  const std::pair<std::string_view, std::string_view> expected[] = {
      {"127.3.3.3", "a loopback address"},   {"10.20.30.40", "a private address"},
      {"::1", "a loopback address"},         {"100.64.7.7", "an address of a carrier's network"},
      {"198.18.7.7", "a benchmark address"}, {"224.1.2.3", "a multicast address"},
      {"fe80::77", "a link-local address"},  {"fd12::77", "a private address"},
      {"240.7.7.7", "a reserved address"},   {"0.7.7.7", "an unspecified address"},
      {"169.254.7.7", "metadata"},           {"203.0.113.7", "a range that nothing opens"},
      {"203.0.113.8", "that a rule denies"}, {"93.184.7.7", "a range that nothing opens"},
  };
  for (const auto& [address, words] : expected) {
    const auto text = resolved_text(policy, "open.test", address);
    CHECK_MESSAGE(contains(text, words), text);
    CHECK_MESSAGE(contains(text, "open.test:443"), text);
    CHECK_MESSAGE(!contains(text, address), text);
  }
  CHECK(contains(resolved_text(policy, "open.test", "127.3.3.3"), "--allow-domain 127.0.0.1:443"));
  CHECK(contains(resolved_text(policy, "open.test", "198.18.7.7"), "198.18.0.0/15"));
}

TEST_CASE("every reason has a word for machines and a sentence with its own remedy") {
  const auto policy = build({allow("open.test")});
  std::set<std::string> words, sentences;
  for (int reason = 0; reason <= static_cast<int>(denial_reason::self); ++reason) {
    const decision d{false, static_cast<denial_reason>(reason)};
    words.insert(std::string(to_string(d.reason)));
    const auto text = policy->explain(to("x.test:99"), d);
    CHECK_MESSAGE(text.starts_with("x.test:99 is refused: "), text);
    CHECK_MESSAGE(contains(text, "; "), text);
    CHECK_MESSAGE(!contains(text, "\n"), text);
    sentences.insert(text);
  }
  CHECK(words.size() == 9);
  CHECK(sentences.size() == 9);
  CHECK(contains(policy->explain(to("x.test"), {false, denial_reason::sni_mismatch}), "sni: log"));
  CHECK_FALSE(contains(policy->explain(to("x.test"), {false, denial_reason::self}), "--allow-domain"));
  CHECK(policy->explain({}, {false, denial_reason::malformed}).starts_with("the destination is refused: "));
}

TEST_CASE("the sentence for loopback says how a command gets past NO_PROXY") {
  const auto policy = build({allow("open.test")});
  for (const auto& text : {text_of(policy, "127.0.0.1:8080"), text_of(policy, "[::1]:8080"),
                           text_of(policy, "localhost:8080"), resolved_text(policy, "open.test", "::1")}) {
    CHECK_MESSAGE(contains(text, "set NO_PROXY= and no_proxy= for that command"), text);
    CHECK_MESSAGE(contains(text, "curl --noproxy ''"), text);
  }
  CHECK_FALSE(contains(text_of(policy, "10.0.0.1:80"), "NO_PROXY"));
}
