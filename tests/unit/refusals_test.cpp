#include "cli/refusals.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace ccbox;

namespace {

sandbox_violation refused(const std::string& target, const std::string& reason, int count = 1,
                          const std::string& rule = "") {
  return {"network-outbound",
          target,
          {},
          "{\"reason\":\"" + reason + "\",\"rule\":\"" + rule + "\"}",
          static_cast<std::uint64_t>(count)};
}

}  // namespace

TEST_CASE("each destination has one line with its count, reason and remedy, the most frequent first") {
  refusals seen(true);
  CHECK(seen.empty());
  CHECK(seen.text().empty());
  seen.add(refused("one.test:443", "blocked-by-allowlist"));
  seen.add(refused("two.test:443", "blocked-by-denylist", 2, "*.two.test (denied.telemetry)"));
  seen.add(refused("two.test:443", "blocked-by-denylist", 3, "*.two.test (denied.telemetry)"));
  seen.add(refused("git.test:9418", "port"));
  CHECK(seen.text() ==
        "ccbox: refused 5 connections to two.test:443: blocked-by-denylist by *.two.test (denied.telemetry); "
        "the "
        "egress file denies it for everybody\n"
        "ccbox: refused a connection to git.test:9418: port; allow the port with --allow-domain "
        "'git.test:9418'\n"
        "ccbox: refused a connection to one.test:443: blocked-by-allowlist; allow it with --allow-domain "
        "'one.test'\n");
}

TEST_CASE("a denied destination is shown with the line that denies it, or as one that nothing opens") {
  const std::string reason = "blocked-by-denylist";
  const std::vector<egress_rule> rules{
      {egress_action::deny, false, "*.two.test", "denied.sinks", "a sink", "/etc/egress.yaml:7"}};
  refusals seen(true);
  seen.add({"network-outbound",
            "a.two.test:443",
            {},
            R"({"reason":"blocked-by-denylist","rule":"*.two.test","origin":"denied.sinks"})"});
  CHECK(seen.text(rules) ==
        "ccbox: refused a connection to a.two.test:443: blocked-by-denylist by *.two.test (denied.sinks); "
        "denied for everybody at /etc/egress.yaml:7\n");
  CHECK(remedy_of(reason, "169.254.169.254:80", true, "cloud metadata addresses (built in)", rules) ==
        "nothing opens it");
}

TEST_CASE("the remedy for a loopback address says how a command gets past NO_PROXY") {
  CHECK(remedy_of("ip-literal", "127.0.0.1:80", true) ==
        "allow it with --allow-domain '127.0.0.1:80', and set NO_PROXY= for the command");
  CHECK(remedy_of("ip-literal", "192.0.2.1:80", true) ==
        "use the host's name, or --allow-domain '192.0.2.1:80'");
}

TEST_CASE("the remedy for a name of this host is its address") {
  for (const std::string host : {"localhost", "LOCALHOST.", "a.localhost"})
    CHECK_MESSAGE(remedy_of("resolved-address", host + ":8080", true) ==
                      "ask for '127.0.0.1:8080', allow it with --allow-domain '127.0.0.1:8080', and set "
                      "NO_PROXY= for the command",
                  host);
  for (const std::string host : {"notlocalhost", "localhost.test"})
    CHECK_MESSAGE(remedy_of("resolved-address", host + ":8080", true) ==
                      "its name leads to an address that is not on the Internet",
                  host);
}

TEST_CASE("the remedy of a session without network is the network") {
  refusals seen(false);
  seen.add(refused("one.test:443", "blocked-by-allowlist"));
  CHECK(seen.text() ==
        "ccbox: refused a connection to one.test:443: blocked-by-allowlist; the session's network is off\n");
}

TEST_CASE("what a command put into a host's name does not reach the terminal as it is") {
  refusals seen(true);
  seen.add({"network-outbound", "a\x1b[2Jb:443", {}, "not JSON"});
  const std::string text = seen.text();
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.starts_with("ccbox: refused a connection to a\\x1b[2Jb:443"));
}

TEST_CASE("of very many destinations twenty are named and the others counted") {
  refusals seen(true);
  for (int i = 0; i < 5000; ++i)
    seen.add(refused("n" + std::to_string(i) + ".test:443", "blocked-by-allowlist"));
  const std::string text = seen.text();
  CHECK(std::count(text.begin(), text.end(), '\n') == 21);
  CHECK(text.ends_with("ccbox: refused 4980 connections to further destinations\n"));
}

TEST_CASE("what is allowed and was not reached has lines of its own, behind what was refused") {
  refusals seen(true);
  seen.add(sandbox_unreachable{"gone.test:443", "dns-no-such-name", 1});
  CHECK_FALSE(seen.empty());
  seen.add(sandbox_unreachable{"down.test:80", "connection-refused", 2});
  seen.add(sandbox_unreachable{"down.test:80", "connection-refused", 5});
  seen.add(refused("one.test:443", "blocked-by-allowlist"));
  CHECK(seen.text() ==
        "ccbox: refused a connection to one.test:443: blocked-by-allowlist; allow it with --allow-domain "
        "'one.test'\n"
        "ccbox: 7 connections to down.test:80 failed: connection-refused; it is allowed\n"
        "ccbox: a connection to gone.test:443 failed: dns-no-such-name; it is allowed\n");
  for (unsigned i = 0; i < 5000; ++i)
    seen.add(sandbox_unreachable{"n\x1b" + std::to_string(i) + ".test:443", "dns-timeout", 2});
  const std::string text = seen.text();
  CHECK(std::count(text.begin(), text.end(), '\n') == 22);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.ends_with("ccbox: 9963 connections to further destinations failed; they are allowed\n"));
}

TEST_CASE("a refused name is told with what was to be done, how often, the rule and its reason") {
  refusals seen(true);
  const auto denied = [](const char* action, const std::string& target, std::uint64_t count) {
    const std::string raw = R"-({"rule":".env","reason":"secrets of the project (policy.yaml:3:1)"})-";
    return sandbox_violation{action, target, {}, raw, count};
  };
  seen.add(denied("file-write-create", "/work/a\x1b/.env", 1));
  seen.add(denied("file-write-unlink", "/work/.env", 1));
  seen.add(denied("file-write-unlink", "/work/.env", 2));
  CHECK(seen.text() ==
        "ccbox: refused 3 times to remove '/work/.env': .env; secrets of the project (policy.yaml:3:1)\n"
        "ccbox: refused to make '/work/a\\x1b/.env': .env; secrets of the project (policy.yaml:3:1)\n");
}

TEST_CASE("configuration of git that was refused is told as what the program tried, with a remedy") {
  // git writes config.lock and renames it; all that it prints itself is that it could not write the file.
  refusals seen(true);
  for (const std::string rule : {"**/.git/config", "**/.git/modules/**/config", ".env"}) {
    seen.add({"file-write-create",
              "/work/" + rule.substr(rule.rfind('/') + 1),
              {},
              R"({"operation":"rename","rule":")" + rule + R"(","reason":"alias.x can do harm"})"});
  }
  CHECK(
      seen.text() ==
      "ccbox: refused 2 times to move something to '/work/config': **/.git/modules/**/config; alias.x can do "
      "harm; set it outside of the enclosure\n"
      "ccbox: refused to move something to '/work/.env': .env; alias.x can do harm\n");
}

TEST_CASE("what is no name and no connection has its verb and its object, with whatever is known") {
  refusals seen(true);
  seen.add({"mach-lookup", "com.example\x1b", {}, {}});
  seen.add({"file-read-data", "/home/me/.ssh/id", {}, R"({"rule":"/home/me/.ssh","reason":"SSH keys"})"});
  seen.add({"process-exec", "./x", {}, R"({"line":"fork/exec ./x: permission denied"})", 2});
  CHECK(seen.text() ==
        "ccbox: refused 2 times to execute './x'\n"
        "ccbox: refused mach-lookup of 'com.example\\x1b'\n"
        "ccbox: refused to read '/home/me/.ssh/id': /home/me/.ssh; SSH keys\n");
}

TEST_CASE("what a monitor counted together is told as further actions") {
  refusals seen(true);
  seen.add({"*", "*", {}, {}, 40});
  CHECK_FALSE(seen.empty());
  CHECK(seen.text() == "ccbox: refused 40 further actions\n");
}

TEST_CASE("the capability that would allow a destination is named beside the remedy") {
  refusals seen(true);
  auto refusal = refused("api.github.test:443", "blocked-by-allowlist");
  refusal.suggested_capability = "canCallGitHubApi";
  seen.add(refusal);
  CHECK(seen.text() ==
        "ccbox: refused a connection to api.github.test:443: blocked-by-allowlist; allow it with "
        "--allow-domain 'api.github.test', or with the capability canCallGitHubApi\n");
}
