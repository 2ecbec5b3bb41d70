#include "plugins/violations/session_watch.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "json_reader.hpp"
#include "support/result_printing.hpp"

namespace {

namespace plugin = ccbox::plugin;
using namespace ccbox::violations;

struct told {
  std::uint64_t exec_id, count;
  std::string action, target, capability, raw;
};

std::string str(ccbox_str text) {
  return {text.ptr, text.len};
}

ccbox_str abi(std::string_view text) {
  return {text.data(), text.size()};
}

// A watch over a home with two secrets, and what it told.
struct scene {
  std::vector<told> all;
  ccbox_monitor_sink table{
      sizeof table, 0, &all, [](void* ctx, const ccbox_violation* v) {
        static_cast<std::vector<told>*>(ctx)->push_back({v->exec_id, v->count, str(v->action), str(v->target),
                                                         str(v->suggested_capability), str(v->raw)});
      }};
  plugin::monitor_sink sink{&table};
  noise_filter noise;
  std::unique_ptr<session_watch> watch;

  explicit scene(bool denials_reported, const std::string& ignore = {}) : noise(ignore, true) {
    const auto exists = CCBOX_RULE_EXISTS;
    const ccbox_rule rules[] = {
        {CCBOX_KIND_READ_DENY, exists | CCBOX_RULE_DIRECTORY, CCBOX_RULE_FS_READ_DENY, abi("/home/me/.ssh"),
         abi("/home/me/.ssh"), abi("SSH keys (policy.yaml:25:5)")},
        {CCBOX_KIND_READ_DENY, exists, CCBOX_RULE_FS_READ_DENY, abi("/host/.netrc"), abi("/w/.netrc"),
         abi("passwords")},
        {CCBOX_KIND_READ_DENY, 0, CCBOX_RULE_FS_READ_DENY, abi("/w/missing"), abi("/w/missing"), abi("r")},
        {CCBOX_KIND_READ_DENY, exists, CCBOX_RULE_EXEC_DENY, abi("/w/other"), abi("/w/other"), abi("r")},
        {CCBOX_KIND_WRITE_DENY, exists, CCBOX_RULE_FS_READ_DENY, abi("/w/ro"), abi("/w/ro"), abi("r")}};
    ccbox_monitor_request request{};
    request.size = sizeof request;
    request.flags = denials_reported ? CCBOX_MONITOR_DENIALS_REPORTED : 0;
    request.rules = rules;
    request.rule_count = std::size(rules);
    request.rule_stride = sizeof(ccbox_rule);
    request.enforced = CCBOX_RULE_FS_READ_DENY;
    request.session_id = abi("s1");
    request.workdir = abi("/w");
    watch = std::make_unique<session_watch>(noise, plugin::monitor_request(&request));
  }

  void deny(std::string_view action, std::string_view target, std::uint64_t count = 1) {
    watch->denial({0, count, action, target, "canPush", "{\"rule\":\".env\"}"}, sink);
  }
  void say(std::string_view line, std::uint64_t exec_id = 7) {
    watch->output(exec_id, line, sink);
    watch->output(exec_id, "\n", sink);
  }
  void flush() { watch->flush(false, sink); }
};

}  // namespace

TEST_CASE("a denial is told at once, as it came; a storm of it is told once more, with its count") {
  scene s(true);
  s.deny("file-write-create", "/w/.env");
  REQUIRE(s.all.size() == 1);
  CHECK(s.all[0].action == "file-write-create");
  CHECK(s.all[0].target == "/w/.env");
  CHECK(s.all[0].capability == "canPush");
  CHECK(s.all[0].raw == "{\"rule\":\".env\"}");
  CHECK(s.all[0].count == 1);
  for (unsigned i = 0; i < 10000; ++i)
    s.deny("file-write-create", "/w/.env", 2);
  s.deny("file-write-data", "/w/.env");
  REQUIRE(s.all.size() == 2);
  s.flush();
  REQUIRE(s.all.size() == 3);
  CHECK(s.all[2].count == 20000);
  CHECK(s.all[2].raw == s.all[0].raw);
  s.flush();
  CHECK(s.all.size() == 3);
}

TEST_CASE("of very many kinds the rest is counted together, and nothing is lost") {
  scene s(true);
  for (unsigned i = 0; i < 5000; ++i)
    s.deny("file-write-create", "/w/" + std::to_string(i) + ".pem");
  CHECK(s.all.size() == tally::most_kinds);
  s.flush();
  REQUIRE(s.all.size() == tally::most_kinds + 1);
  CHECK(s.all.back().action == "*");
  CHECK(s.all.back().count == 5000 - tally::most_kinds);
}

TEST_CASE("what harms nobody is not told, nor what the options name") {
  scene s(true, "network-outbound *.telemetry.test:443\n\n# caches\nfile-write* /w/cache/*");
  for (const auto& [action, target] : std::vector<std::pair<std::string, std::string>>{
           {"file-write-data", "/dev/tty"},
           {"file-write-create", "/w/__pycache__/x.cpython-311.pyc"},
           {"file-write-data", "/proc/self/oom_score_adj"},
           {"network-outbound", "a.telemetry.test:443"},
           {"file-write-create", "/w/cache/.env"}})
    s.deny(action, target);
  CHECK(s.all.empty());
  s.deny("file-read-data", "/w/cache/.env");
  s.deny("network-outbound", "telemetry.test:443");
  CHECK(s.all.size() == 2);
}

TEST_CASE("an entry of the filter that is none is an error with its line") {
  try {
    const noise_filter filter("# first\n\n  file-write*  \n", true);
    FAIL("it was taken");
  } catch (const plugin::failure& e) {
    CHECK(e.status() == CCBOX_INVALID);
    CHECK(std::string(e.what()) ==
          "option 'ignore', line 3: 'file-write*' is no pattern for the action and one for the target, such "
          "as 'file-write* *.pyc'");
  }
  CHECK_FALSE(noise_filter("", false).covers("file-write-data", "/dev/tty"));
}

TEST_CASE("a complaint about a masked path is a refused read, with the rule's reason") {
  scene s(true);
  s.say("cat: /home/me/.ssh/id_rsa: Permission denied");
  REQUIRE(s.all.size() == 1);
  CHECK(s.all[0].exec_id == 7);
  CHECK(s.all[0].action == "file-read-data");
  CHECK(s.all[0].target == "/home/me/.ssh/id_rsa");
  const auto raw = ccbox::parse_json(s.all[0].raw);
  REQUIRE(raw);
  CHECK(raw->at("source") == "stderr");
  CHECK(raw->at("line") == "cat: /home/me/.ssh/id_rsa: Permission denied");
  CHECK(raw->at("program") == "cat");
  CHECK(raw->at("rule") == "/home/me/.ssh");
  CHECK(raw->at("reason") == "SSH keys (policy.yaml:25:5)");

  s.say("PermissionError: [Errno 13] Permission denied: 'x/../.netrc'");
  REQUIRE(s.all.size() == 2);
  CHECK(s.all[1].target == "/w/.netrc");
}

TEST_CASE("where the backend reports what it refuses, other complaints are none of the monitor's business") {
  scene s(true);
  for (const auto* line :
       {"cat: /root/x: Permission denied", "cat: /home/me/.sshx: Permission denied",
        "cat: /w/missing: Permission denied", "cat: /w/other: Permission denied",
        "cat: /w/ro: Permission denied", "rm: cannot remove '/w/.netrc': Permission denied",
        "ping: socket: Operation not permitted", "Permission denied"})
    s.say(line);
  CHECK(s.all.empty());
}

TEST_CASE("where the backend reports nothing, each complaint is a violation") {
  scene s(false);
  s.say("rm: cannot remove '/w/x': Operation not permitted");
  s.say("ping: socket: Operation not permitted");
  s.say("cat: /dev/tty: Permission denied");
  REQUIRE(s.all.size() == 2);
  CHECK(s.all[0].action == "file-write-unlink");
  CHECK(s.all[0].target == "/w/x");
  CHECK(s.all[0].capability.empty());
  CHECK(s.all[1].action == "system-socket");
  CHECK(s.all[1].target == "ping");
}

TEST_CASE("lines of two commands are not mixed, and a command's last line needs no end") {
  scene s(false);
  s.watch->output(1, "cat: /a: Permission ", s.sink);
  s.watch->output(2, "cat: /b: Operation not ", s.sink);
  s.watch->output(1, "denied", s.sink);
  s.watch->output(2, "permitted\n", s.sink);
  REQUIRE(s.all.size() == 1);
  CHECK(s.all[0].exec_id == 2);
  s.watch->output(1, "", s.sink);
  REQUIRE(s.all.size() == 2);
  CHECK(s.all[1].exec_id == 1);
  CHECK(s.all[1].target == "/a");
}

TEST_CASE("what came after a command had ended is read at the end of the session, too") {
  scene s(false);
  s.watch->output(1, "", s.sink);
  s.watch->output(1, "cat: /a: Permission denied", s.sink);
  s.flush();
  CHECK(s.all.empty());
  s.watch->flush(true, s.sink);
  REQUIRE(s.all.size() == 1);
  CHECK(s.all[0].target == "/a");
}

TEST_CASE("a flood of complaints is read in part, and counted") {
  scene s(false);
  std::string lines;
  for (unsigned i = 0; i < 1000; ++i)
    lines += "cat: /x" + std::to_string(i) + ": Permission denied\n";
  s.watch->output(1, lines, s.sink);
  CHECK(s.all.size() == session_watch::most_lines);
  s.flush();
  CHECK(s.all.back().count == 1000 - session_watch::most_lines);
}

TEST_CASE("whatever a command writes, what is told of it is JSON of one line") {
  scene s(false);
  s.say("cat: \"\x1b[2J\\\x01\xff\xe2\x80\xae\xed\xa0\x80\": Permission denied");
  REQUIRE(s.all.size() == 1);
  const auto raw = ccbox::parse_json(s.all[0].raw);
  REQUIRE(raw);
  CHECK(raw->at("line") == "cat: \"\\\\x01\\xff\xe2\x80\xae\\xed\\xa0\\x80\": Permission denied");
}
