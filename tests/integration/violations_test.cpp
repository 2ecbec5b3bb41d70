// What becomes of refused actions: the monitor, real tools that complain, and what `ccbox run` tells of them.
#include <unistd.h>

#include <boost/json.hpp>
#include <sstream>

#include "cli_support.hpp"
#include "json_reader.hpp"

using namespace ccbox;
using namespace ccbox::test;
namespace json = boost::json;

namespace {

// A work directory with a home beside it that holds a secret; both are bound.
struct scene {
  temporary_directory dir;
  std::string home = dir.path() + "/home", work = home + "/work";
  std::string manifest = CCBOX_TEST_SOURCE_DIR "/config/plugins.yaml";

  scene() {
    dir.write("home/work/.x", "");
    dir.write("home/.ssh/id", "the key\n");
    dir.write("home/.netrc", "machine m password p\n");
  }

  finished ccbox(const arguments& options, const std::string& script) const {
    run_options how;
    how.cwd = work;
    how.env = arguments{"HOME=" + home, "PATH=/usr/local/bin:/usr/bin:/bin"};
    return run(arguments{ccbox_program(), "run", "--plugins", manifest, "--bind", home} + options +
                   arguments{"--", "sh", "-c", script},
               how);
  }

  // Violations among the lines of `--json`, in order.
  std::vector<json::object> violations(const std::string& script, const arguments& options = {}) const {
    const auto done = ccbox(arguments{"--json"} + options, script);
    CAPTURE(done.err);
    std::vector<json::object> out;
    std::istringstream lines(done.out);
    for (std::string line; std::getline(lines, line);) {
      const auto event = json::parse(line);
      REQUIRE_MESSAGE(event.at("type") != "error", line);
      if (event.at("type") == "violation") out.push_back(event.at("violation").as_object());
    }
    return out;
  }
};

std::string text(const json::object& violation, const char* key) {
  return std::string(violation.at(key).as_string());
}

std::int64_t count_of(const json::object& violation) {
  const auto* count = violation.if_contains("count");
  return count ? count->to_number<std::int64_t>() : 1;
}

// Masks are of mode 0, which does not keep a root caller out: it finds them empty, and nobody complains.
bool reads_are_refused() {
  return ::geteuid() != 0;
}

constexpr const char* storm =
    "i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo x > .env; done 2>/dev/null; true";

}  // namespace

TEST_CASE("a storm of refusals is one event at once and one with the count of the others") {
  const scene s;
  const auto all = s.violations(storm);
  REQUIRE(all.size() >= 2);
  CHECK(all.size() <= 30);  // one more for each second that the machine takes
  std::int64_t count = 0;
  for (const auto& violation : all) {
    CHECK(text(violation, "action") == "file-write-create");
    CHECK(text(violation, "target") == s.work + "/.env");
    count += count_of(violation);
  }
  CHECK(count_of(all[0]) == 1);
  CHECK(count == 300);
  const auto raw = json::parse(all[0].at("raw").as_string());
  CHECK(raw.at("rule") == ".env");
  CHECK(raw.at("operation") == "create");
}

TEST_CASE("without the monitor each refusal is an event as it comes, and nothing that commands say is read") {
  scene s;
  s.manifest = s.dir.write("plugins.yaml",
                           "plugins:\n  - path: bubblewrap.so\n    priority: 100\n  - path: egress.so\n");
  const auto all = s.violations("for i in 1 2 3; do echo x > .env; done; cat " + s.home + "/.netrc; true");
  REQUIRE(all.size() == 3);
  for (const auto& violation : all)
    CHECK(text(violation, "target") == s.work + "/.env");
}

TEST_CASE("a command that was refused a secret is heard of, with the rule and its reason") {
  const scene s;
  const std::string key = s.home + "/.ssh/id", netrc = s.home + "/.netrc";
  for (const auto& [script, target] : std::vector<std::pair<std::string, std::string>>{
           {"cat " + netrc, netrc},
           {"cat " + key, key},
           {"ls " + s.home + "/.ssh", s.home + "/.ssh"},
           {"cp " + netrc + " copy", netrc},
           {"grep -r key " + s.home + "/.ssh", s.home + "/.ssh"},
           {"cat < " + netrc, netrc},
           {"bash -c 'cat < ../.netrc'", netrc},
           {"tar cf x.tar -C / " + netrc.substr(1), ""},
           {"python3 -c 'open(\"" + key + "\")'", key},
           {"node -e 'require(\"fs\").readFileSync(\"" + netrc + "\")'", netrc},
           {"git config --file " + netrc + " --list", netrc}}) {
    CAPTURE(script);
    const auto all = s.violations(script);
    if (!reads_are_refused() || target.empty()) {
      CHECK(all.empty());
      continue;
    }
    REQUIRE(all.size() >= 1);
    CHECK(text(all[0], "action") == "file-read-data");
    CHECK(text(all[0], "target") == target);
    const auto raw = json::parse(all[0].at("raw").as_string());
    CHECK(raw.at("source") == "stderr");
    CHECK(contains(std::string(raw.at("reason").as_string()), "policy.yaml:"));
  }
}

TEST_CASE("a complaint about anything else is none of the monitor's business where the broker tells") {
  const scene s;
  CHECK(s.violations("mknod b b 8 0; echo 'cat: /x: Permission denied' >&2; true").empty());
}

TEST_CASE("where nobody tells of refused actions, the complaints of commands are violations") {
  const scene s;
  const auto all = s.violations("mknod b b 8 0; echo 'tool: /x/y: Permission denied' >&2; cat /dev/tty; true",
                                {"--without", "fs_name_deny"});
  REQUIRE(all.size() == 2);
  CHECK(text(all[0], "action") == "file*");
  CHECK(text(all[0], "target") == "b");
  CHECK(text(all[1], "target") == "/x/y");
  CHECK(contains(text(all[1], "raw"), "tool: /x/y: Permission denied"));
}

TEST_CASE("without a boundary nothing is a violation: it is the host that refuses") {
  const scene s;
  CHECK(s.violations("echo 'tool: /x/y: Permission denied' >&2", {"--backend", "none"}).empty());
}

TEST_CASE("what a command writes reaches the caller byte for byte, however it is read meanwhile") {
  const scene s;
  const std::string odd = R"(\033[31mcat: /x: Permission \377denied\r\n\000Operation not permitted)";
  const auto done = s.ccbox({"--json", "--without", "fs_name_deny"}, "printf '" + odd + "' | tee copy >&2");
  std::string bytes;
  std::istringstream lines(done.out);
  for (std::string line; std::getline(lines, line);) {
    const auto event = json::parse(line);
    if (event.at("type") != "stderr") continue;
    CHECK(event.at("encoding") == "base64");
    bytes += std::string(event.at("data").as_string());
  }
  const auto expected = run({"sh", "-c", "base64 -w0 < '" + s.work + "/copy'"}).out;
  CHECK(bytes == expected);
}

TEST_CASE("whatever a name has in it, no line of ccbox is forged by it") {
  const scene s;
  const std::string script =
      "d=\"$(printf 'a\\nccbox: error: forged\\033[2J\\342\\200\\256')\"; mkdir \"$d\"; echo x > \"$d/.env\"";
  for (const std::string mode : {"summary", "all", "json"}) {
    CAPTURE(mode);
    const auto done = s.ccbox({"--violations", mode}, "( " + script + " ) 2>/dev/null");
    CHECK(contains(done.err, "forged"));
    CHECK_FALSE(contains(done.err, "\nccbox: error: forged"));
    CHECK_FALSE(contains(done.err, "\x1b"));
    CHECK_FALSE(contains(done.err, "\xe2\x80\xae"));
  }
}

TEST_CASE("--violations says what is told: nothing, a summary, each as it comes, each as JSON") {
  const scene s;
  const std::string script = "for i in 1 2 3; do echo x > .env; done 2>/dev/null; echo over >&2";
  CHECK(s.ccbox({"--violations", "none"}, script).err == "over\n");
  CHECK(s.ccbox({"--quiet"}, script).err == "over\n");

  const auto summary = s.ccbox({}, script).err;
  CHECK(summary.starts_with("over\nccbox: refused 3 times to make '" + s.work + "/.env': .env; "));
  CHECK(s.ccbox({"--quiet", "--violations", "summary"}, script).err == summary);

  const auto all = s.ccbox({"--violations", "all"}, script).err;
  CHECK(contains(all, "ccbox: refused to make '" + s.work + "/.env': .env; "));
  CHECK(contains(all, "ccbox: refused 2 times to make '"));

  const auto as_json = s.ccbox({"--violations", "json"}, script).err;
  std::istringstream lines(as_json);
  std::int64_t count = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line == "over") continue;
    const auto event = json::parse(line);
    CHECK(event.at("type") == "violation");
    count += count_of(event.at("violation").as_object());
  }
  CHECK(count == 3);
}

TEST_CASE("the events of --json have the violations; lines on standard error come when they are asked for") {
  const scene s;
  CHECK(s.ccbox({"--json"}, storm).err.empty());
  CHECK(contains(s.ccbox({"--json", "--violations", "summary"}, storm).err,
                 "ccbox: refused 300 times to make"));
}

TEST_CASE("on a terminal, too, a refused secret is told of") {
  const scene s;
  auto session = on_terminal::start({"env", "HOME=" + s.home, ccbox_program(), "run", "--bind", s.home,
                                     "--workdir", s.work, "--", "cat", s.home + "/.ssh/none"},
                                    24, 400);
  session.wait();
  CHECK(contains(session.screen(), "ccbox: refused to read '" + s.home + "/.ssh/none'") ==
        reads_are_refused());
}

TEST_CASE("the monitor ignores what its options name, and says where an option is wrong") {
  scene s;
  const std::string others = "plugins:\n  - path: bubblewrap.so\n    priority: 100\n  - path: egress.so\n";
  s.manifest = s.dir.write("ignoring.yaml", others +
                                                "  - path: violations.so\n    options:\n      ignore: |\n"
                                                "        # the project's own\n        file-write* */.env\n");
  CHECK(s.violations("echo x > .env; true").empty());
  s.manifest = s.dir.write("wrong.yaml", others +
                                             "  - path: violations.so\n    options:\n      ignore: |\n"
                                             "        # one\n        file-write*\n");
  const auto done = s.ccbox({}, "echo x > .env");
  CHECK(contains(done.err, "option 'ignore', line 2"));
  CHECK(contains(done.err, "wrong.yaml:5"));
  CHECK(contains(done.err, "ccbox: refused to make"));
}

TEST_CASE("wrap hands --violations on, and both commands refuse a choice that there is not") {
  const temporary_directory work;
  const auto wrapped =
      run({ccbox_program(), "wrap", "--bind", work.path(), "--violations", "all", "--", "true"}, in(work));
  REQUIRE_MESSAGE(wrapped.code == 0, wrapped.err);
  CHECK(contains(wrapped.out, "\"--violations\",\n    \"all\""));
  for (const std::string command : {"run", "wrap"}) {
    const auto refused = run({ccbox_program(), command, "--violations", "some", "--", "true"}, in(work));
    CHECK(refused.code == 125);
    CHECK(contains(refused.err, "--violations 'some': no such choice"));
    CHECK(contains(refused.err, "none, summary, all or json"));
  }
}
