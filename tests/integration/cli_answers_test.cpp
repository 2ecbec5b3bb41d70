// probe, plugins, explain, check path, wrap, doctor and `run --json`: what they answer people and machines.
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <filesystem>
#include <sstream>

#include "cli_support.hpp"

using namespace ccbox::test;
namespace json = boost::json;

namespace {

json::value parsed(const finished& result) {
  CAPTURE(result.err);
  json::error_code failed;
  auto value = json::parse(result.out, failed);
  REQUIRE_FALSE(failed);
  return value;
}

std::vector<json::object> lines_of(const std::string& text) {
  std::vector<json::object> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    out.push_back(json::parse(line).as_object());
  return out;
}

finished answer_of(const temporary_directory& work, const arguments& words, const arguments& env = {}) {
  run_options options = in(work);
  options.extra_env = env;
  return run(arguments{ccbox_program()} + words, options);
}

bool lists(const json::value& array, const std::string& text) {
  for (const json::value& item : array.as_array()) {
    if (item == json::value(text)) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("probe starts an enclosure with every backend and says what is enforced") {
  const temporary_directory work;
  const auto answer = parsed(answer_of(work, {"probe", "--json"}));
  CHECK(answer.at("available").as_bool());
  bool found = false;
  for (const json::value& backend : answer.at("backends").as_array()) {
    if (backend.at("name") != json::value("bubblewrap")) continue;
    found = true;
    CHECK(backend.at("backend") == json::value("native"));
    CHECK(backend.at("available").as_bool());
    CHECK(lists(backend.at("enforced"), "fs_binds_only"));
    CHECK(lists(backend.at("enforced"), "fs_name_deny"));
    CHECK_FALSE(lists(backend.at("enforced"), "exec_deny"));
  }
  CHECK(found);
  CHECK(answer.at("limits").at("wallTime") != json::value(""));
  const auto text = answer_of(work, {"probe"});
  CHECK(text.code == 0);
  CHECK(contains(text.out, "bubblewrap"));
  CHECK(contains(text.out, "fs_binds_only"));
  CHECK_FALSE(contains(text.out, "\x1b"));
}

TEST_CASE("probe answers 1 where no backend encloses commands") {
  const temporary_directory work;
  work.write("plugins.yaml", "plugins:\n  - path: none.so\n");
  const auto result = answer_of(work, {"probe", "--plugins", "plugins.yaml"});
  CHECK(result.code == 1);
  CHECK(contains(result.out, "`ccbox run` refuses"));
  const auto refused = answer_of(work, {"run", "--plugins", "plugins.yaml", "--", "true"});
  CHECK(refused.code == 125);
}

TEST_CASE("plugins lists what was loaded, disabled and skipped, and why") {
  const temporary_directory work;
  ::chmod(work.write("garbage.so", "this is no shared object").c_str(), 0600);
  work.write("plugins.yaml",
             "plugins:\n  - path: bubblewrap.so\n    priority: 9\n  - path: none.so\n    enabled: false\n"
             "  - path: ./garbage.so\n  - path: ./missing.so\n");
  const auto answer = parsed(answer_of(work, {"plugins", "--json", "--plugins", "plugins.yaml"}));
  const auto& list = answer.at("plugins").as_array();
  REQUIRE(list.size() == 4);
  for (const json::value& plugin : list) {
    const std::string path(plugin.at("path").as_string());
    const std::string state(plugin.at("state").as_string());
    CAPTURE(path);
    if (path.ends_with("/bubblewrap.so"))
      CHECK(state == "loaded");
    else if (path.ends_with("/none.so"))
      CHECK(state == "disabled");
    else
      CHECK(state == "skipped");
    CHECK(plugin.as_object().contains("error") == (state == "skipped"));
    CHECK(contains(std::string(plugin.at("where").as_string()), "plugins.yaml:"));
  }
  const auto text = answer_of(work, {"plugins", "--plugins", "plugins.yaml"});
  CHECK(text.code == 0);
  CHECK(contains(text.out, "garbage.so"));
  CHECK(contains(text.out, "missing.so"));
  CHECK(contains(text.out, "disabled"));
}

TEST_CASE("explain prints each rule with its reason, origin and layer") {
  const temporary_directory work;
  const auto result = answer_of(work, {"explain", "--json", "--", "make"}, {"SECRET_THING=do-not-print"});
  CHECK(result.code == 0);
  CHECK_FALSE(contains(result.out, "do-not-print"));
  const auto answer = parsed(result);
  CHECK_FALSE(answer.at("refused").as_bool());
  CHECK(lists(answer.at("required"), "fs_name_deny"));
  CHECK(answer.at("plan").at("argv").as_array().size() > 1);
  std::size_t own_bind = 0, names = 0;
  for (const json::value& rule : answer.at("rules").as_array()) {
    CHECK(rule.at("reason").as_string() != "");
    if (rule.at("path") == json::value(work.path()) && rule.at("kind") == json::value("mount")) {
      ++own_bind;
      CHECK_FALSE(rule.at("readOnly").as_bool());
      CHECK(rule.at("enforcedBy").as_string() != "nobody");
    }
    if (rule.at("kind") == json::value("name_deny")) {
      ++names;
      CHECK(contains(std::string(rule.at("enforcedBy").as_string()), "broker"));
    }
  }
  CHECK(own_bind == 1);
  CHECK(names > 0);
}

TEST_CASE("explain for people says the same") {
  const temporary_directory work;
  write_demanding_policy(work, "policy.yaml");
  const auto refused = answer_of(work, {"explain", "--policy", "policy.yaml"}, {"SECRET_THING=do-not-print"});
  CHECK(refused.code == 0);
  CHECK(contains(refused.out, "would be refused: "));
  CHECK_FALSE(contains(refused.out, "do-not-print"));
  const auto accepted =
      answer_of(work, {"explain", "--without", "fs_name_deny", "--env", "GIVEN=value-of-it"});
  CHECK_FALSE(contains(accepted.out, "would be refused"));
  CHECK(contains(accepted.out, "waived"));
  CHECK(contains(accepted.out, "GIVEN"));
  CHECK_FALSE(contains(accepted.out, "value-of-it"));
  CHECK(contains(accepted.out, "bwrap"));
}

TEST_CASE("explain counts the denies of paths that nothing shows, and lists them when asked") {
  const temporary_directory work;
  work.write(".git/config", "");
  const arguments words{"explain"};
  std::size_t hidden = 0;
  const auto every = parsed(answer_of(work, words + arguments{"--json"}));
  for (const json::value& rule : every.at("rules").as_array())
    hidden += rule.at("kind").as_string().ends_with("_deny") && rule.at("guestPath").as_string().empty();
  REQUIRE(hidden > 100);
  const auto lines_with = [](const std::string& text, const std::string& part) {
    std::istringstream lines(text);
    std::size_t found = 0;
    for (std::string line; std::getline(lines, line);)
      found += contains(line, part);
    return found;
  };
  const auto folded = answer_of(work, words).out, all = answer_of(work, words + arguments{"--all"}).out;
  CHECK(contains(folded,
                 "  and " + std::to_string(hidden) + " denies of paths that nothing inside shows; --all"));
  CHECK(lines_with(folded, "SSH keys") == 0);
  CHECK(contains(folded, ".git/config'"));
  CHECK_FALSE(contains(all, "--all"));
  CHECK(lines_with(all, "SSH keys") > 0);
  const auto rules_of = [](const std::string& text) { return text.substr(0, text.find("\nDestinations")); };
  CHECK(lines_with(rules_of(all), "  ") == lines_with(rules_of(folded), "  ") + hidden - 1);
}

TEST_CASE("check path answers what may be done and which rules say so") {
  const temporary_directory work;
  work.write("file", "");
  work.write(".git/config", "");
  std::filesystem::create_directory(work / "locked");
  const auto code = [&](const arguments& words) {
    return answer_of(work, arguments{"check", "path"} + words).code;
  };
  CHECK(code({"file", "--read"}) == 0);
  CHECK(code({"file", "--write"}) == 0);
  CHECK(code({"new-file", "--create"}) == 0);
  CHECK(code({".git/config", "--read"}) == 0);
  CHECK(code({".git/config", "--write"}) == 1);
  CHECK(code({"locked/x", "--create", "--protect", "locked"}) == 1);
  CHECK(code({"sub/.env", "--create"}) == 1);
  CHECK(code({"/usr/bin/env", "--read"}) == 0);
  CHECK(code({"/usr/bin/env", "--write"}) == 1);
  CHECK(code({"/no/such/mount", "--read"}) == 1);
  CHECK(code({"file", "--write", "--mode", "review"}) == 1);
  const auto answer = parsed(answer_of(work, {"check", "path", ".git/config", "--json"}));
  CHECK(answer.at("readable").as_bool());
  CHECK_FALSE(answer.at("writable").as_bool());
  CHECK(answer.at("rules").as_array().size() > 0);
  CHECK(answer.at("explanation").as_string() != "");
  const auto text = answer_of(work, {"check", "path", ".git/config"});
  CHECK(text.code == 0);
  CHECK(contains(text.out, "writable   no"));
}

TEST_CASE("nothing can be put where the manifest would load it the next time") {
  const temporary_directory work;
  std::filesystem::create_directory(work / "plugins.d");
  work.write("m.yaml",
             "plugins:\n  - path: bubblewrap.so\n  - path: ./later.so\ndirectories: [plugins.d, new.d]\n");
  const auto may = [&](const std::string& path, const std::string& how) {
    return answer_of(work, {"check", "path", path, how, "--plugins", "m.yaml"}).code == 0;
  };
  CHECK_FALSE(may("plugins.d/x.so", "--create"));
  CHECK_FALSE(may("later.so", "--create"));
  CHECK_FALSE(may("new.d", "--create"));
  CHECK(may("else.so", "--create"));
}

TEST_CASE("what ccbox itself runs and believes is not writable where a mount shows it") {
  const temporary_directory work;
  const auto writable = [&](const std::string& directory, const std::string& name) {
    return answer_of(work, {"check", "path", directory + name, "--write", "--bind", directory}).code == 0;
  };
  const std::string programs = CCBOX_TEST_BINARY_DIR "/bin", plugins = CCBOX_TEST_BINARY_DIR "/plugins",
                    config = CCBOX_TEST_SOURCE_DIR "/config";
  CHECK_FALSE(writable(programs, "/ccbox"));
  CHECK_FALSE(writable(programs, "/ccbox-init"));
  CHECK(writable(programs, "/attempt"));
  CHECK_FALSE(writable(plugins, "/bubblewrap.so"));
  CHECK_FALSE(writable(plugins, "/none.so"));
  CHECK_FALSE(writable(config, "/policy.yaml"));
  CHECK_FALSE(writable(config, "/plugins.yaml"));
  // Those that are named instead count just as well.
  std::filesystem::copy(config, work / "mine");
  CHECK(writable(work / "mine", "/policy.yaml"));
  const auto chosen =
      answer_of(work, {"check", "path", "mine/policy.yaml", "--write", "--policy", "mine/policy.yaml"});
  CHECK(chosen.code == 1);
  CHECK(contains(chosen.out, "a part of this very sandbox"));
}

TEST_CASE("check path and the enclosure agree") {
  const temporary_directory work;
  work.write("file", "x");
  work.write(".git/config", "x");
  work.write(".git/hooks/pre-commit", "x");
  work.write(".bashrc", "x");
  work.write("a/b/server.key", "x");
  for (const std::string path :
       {"file", ".git/config", ".git/hooks/pre-commit", ".bashrc", "a/b/server.key"}) {
    CAPTURE(path);
    for (const auto& [question, script] :
         {std::pair<std::string, std::string>{"--read", "cat \"$1\" >/dev/null"},
          {"--write", "printf y >> \"$1\""}}) {
      const bool said = answer_of(work, {"check", "path", path, question}).code == 0;
      const bool done = enclosed(work, {"sh", "-c", script, "sh", path}).code == 0;
      CAPTURE(question);
      CHECK(said == done);
    }
  }
}

TEST_CASE("what check path says of each call is what comes of it") {
  const temporary_directory work;
  const auto prepare = [&] {
    std::filesystem::remove_all(work / "d");
    for (const std::string path : {"d/file", "d/.env", "d/a.key", "d/old/.git/config"})
      work.write(path, "[core]\n");
    std::filesystem::create_directories(work / "d/new/.git/hooks");
    std::filesystem::create_directories(work / "d/new/.git/worktrees/w");
    work.write("d/new/.git/lock", "[core]\n");
  };
  const std::string script = R"(
import errno, os, sys
path, what = sys.argv[1:]
# Configuration of git comes from beside it; in hooks nothing else may be made.
beside = os.path.dirname(path) + '/beside' if path.endswith('config') else 'd/beside'
if what.endswith('to it'):
  open(beside, 'w').write('[core]\n')
calls = {
  'read': lambda: open(path).read(),
  'write': lambda: os.open(path, os.O_WRONLY),
  'create': lambda: os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600),
  'rename to it': lambda: os.rename(beside, path),
  'rename it': lambda: os.rename(path, beside),
  'link to it': lambda: os.link(beside, path),
  'link of it': lambda: os.link(path, beside),
  'remove': lambda: os.unlink(path),
}
try:
  calls[what]()
  print('done')
except OSError as e:
  print(errno.errorcode[e.errno])
)";
  for (const std::string path :
       {"d/file", "d/none", "d/.env", "d/new.key", "d/a.key", "d/old/.git/config", "d/new/.git/config",
        "d/new/.git/hooks/a", "d/.env.example", "d/new/.git/worktrees/w/commondir"}) {
    prepare();
    const auto answer = parsed(answer_of(work, {"check", "path", path, "--json"}));
    REQUIRE(answer.at("operations").as_array().size() == 8);
    for (const json::value& each : answer.at("operations").as_array()) {
      prepare();
      const std::string operation(each.at("operation").as_string()), why(each.at("why").as_string()),
          may(each.at("answer").as_string());
      const auto done = enclosed(work, {"python3", "-c", script, path, operation}).out;
      CAPTURE(path);
      CAPTURE(operation);
      CAPTURE(why);
      CHECK(done == (may == "no" ? why.substr(0, why.find_first_of(":, ")) : "done") + "\n");
    }
  }
}

TEST_CASE("what wrap answers runs the same enclosure") {
  const temporary_directory work;
  const auto answer = parsed(answer_of(work,
                                       {"wrap", "--env", "TOKEN_FOR_IT", "--ro", "/opt", "--bind", ".", "--",
                                        "sh", "-c", "pwd; echo \"$TOKEN_FOR_IT\"; exit 6", "two words"},
                                       {"TOKEN_FOR_IT=s3cret", "LD_PRELOAD=", "NOT_ALLOWED=1"}));
  CHECK(answer.at("backend") == json::value("bubblewrap"));
  arguments argv;
  for (const json::value& word : answer.at("argv").as_array())
    argv.emplace_back(word.as_string());
  for (const std::string& word : argv)
    CHECK_FALSE(contains(word, "s3cret"));
  run_options options = in(work);
  options.env = arguments{};
  for (const auto& member : answer.at("env").as_object()) {
    options.env->push_back(std::string(member.key()) + "=" + std::string(member.value().as_string()));
    CHECK(member.key() != "NOT_ALLOWED");
    CHECK(member.key() != "LD_PRELOAD");
  }
  const auto result = run(argv, options);
  CHECK(result.code == 6);
  CHECK(result.out == work.path() + "\ns3cret\n");
}

TEST_CASE("wrap refuses a word or a variable that JSON cannot carry as it is, and names it") {
  const temporary_directory work;
  const auto word = answer_of(work, {"wrap", "-q", "--", "cat", "a\xff"});
  CHECK(word.code == 125);
  CHECK(word.out.empty());
  CHECK(contains(word.err, "the word 'a\\xff' is not UTF-8"));
  const auto variable = answer_of(work, {"wrap", "-q", "--env", "ODD=secret\xff", "--", "cat"});
  CHECK(variable.code == 125);
  CHECK(contains(variable.err, "the variable 'ODD' is not UTF-8"));
  CHECK_FALSE(contains(variable.err, "secret"));
}

TEST_CASE("wrap refuses a variable that would act on ccbox itself, and says how to set it") {
  const temporary_directory work;
  for (const std::string name : {"LD_PRELOAD", "HOME"}) {
    const auto refused = answer_of(work, {"wrap", "-q", "--env", name + "=/x", "--", "cat"});
    CHECK(refused.code == 125);
    CHECK(refused.out.empty());
    CHECK(contains(refused.err, "it would change ccbox itself"));
    CHECK(contains(refused.err, "env " + name + "=VALUE"));
  }
}

TEST_CASE("what is printed is JSON whatever the bytes of a path") {
  const temporary_directory work;
  std::filesystem::create_directory(work / "odd\xff");
  parsed(answer_of(work, {"explain", "--json", "--ro", "odd\xff"}));
  const auto answer = parsed(answer_of(work, {"check", "path", "odd\xff", "--json"}));
  CHECK(answer.at("path").as_string().ends_with("odd\xef\xbf\xbd"));
}

TEST_CASE("wrap refuses what run refuses") {
  const temporary_directory work;
  write_demanding_policy(work, "policy.yaml");
  const auto result = answer_of(work, {"wrap", "--policy", "policy.yaml", "--", "true"});
  CHECK(result.code == 125);
  CHECK(result.out == "");
  CHECK(contains(result.err, "--without exec_deny"));
}

TEST_CASE("doctor lists checks with what was found and is healthy here") {
  const temporary_directory work;
  const auto text = answer_of(work, {"doctor"});
  CAPTURE(text.out);
  CHECK(text.code == 0);
  for (const std::string subject :
       {"bwrap", "socat", "kernel", "Landlock", "policy file", "plugin manifest", "enclosure"}) {
    CHECK(contains(text.out, subject));
  }
  const auto answer = parsed(answer_of(work, {"doctor", "--json"}));
  CHECK(answer.at("healthy").as_bool());
}

TEST_CASE("doctor names what is broken, with a remedy, and answers 1") {
  const temporary_directory work;
  work.write("policy.yaml", "no_such_key: 1\n");
  work.write("plugins.yaml", "plugins:\n  - path: ./missing.so\n");
  const auto policy = answer_of(work, {"doctor", "--policy", "policy.yaml"});
  CHECK(policy.code == 1);
  CHECK(contains(policy.out, "policy.yaml:1:"));
  const auto plugins = answer_of(work, {"doctor", "--plugins", "plugins.yaml"});
  CHECK(plugins.code == 1);
  CHECK(contains(plugins.out, "missing.so"));
  CHECK(contains(plugins.out, "no backend that encloses commands works"));
}

TEST_CASE("run --json prints the handle first, then the events in order") {
  const temporary_directory work;
  run_options options = in(work);
  options.input = "from stdin";
  const auto result = run({ccbox_program(), "run", "--json", "--session", "json-1", "--", "sh", "-c",
                           "cat; echo err >&2; printf '\\377'; exit 3"},
                          options);
  CHECK(result.code == 3);
  const auto lines = lines_of(result.out);
  REQUIRE(lines.size() >= 5);
  CHECK(lines[0].at("type") == json::value("handle"));
  CHECK(lines[0].at("handle").at("sessionId") == json::value("json-1"));
  CHECK(lines[0].at("handle").at("backend") == json::value("native"));
  CHECK(json::serialize(lines[0].at("handle").at("details")).find("fs_name_deny") != std::string::npos);
  CHECK(lines[1].at("type") == json::value("starting"));
  CHECK(lines[2].at("type") == json::value("ready"));
  CHECK(lines.back().at("type") == json::value("exit"));
  CHECK(lines.back().at("exitCode") == json::value(3));
  bool saw_out = false, saw_err = false;
  for (const auto& line : lines) {
    if (line.at("type") == json::value("stdout") && line.at("data").as_string().starts_with("from stdin"))
      saw_out = true;
    if (line.at("type") == json::value("stderr")) saw_err = line.at("data") == json::value("err\n");
  }
  CHECK((saw_out || contains(result.out, "base64")));
  CHECK(saw_err);
}

TEST_CASE("run --json loses nothing of a large output") {
  const temporary_directory work;
  const auto result = run(
      run_words + arguments{"--json", "--", "sh", "-c", "head -c 4000000 /dev/zero | tr '\\0' a"}, in(work));
  std::size_t bytes = 0;
  for (const auto& line : lines_of(result.out)) {
    if (line.at("type") == json::value("stdout")) bytes += line.at("data").as_string().size();
  }
  CHECK(bytes == 4000000);
}

TEST_CASE("run --json says why a launch was refused, and when a limit killed it") {
  const temporary_directory work;
  write_demanding_policy(work, "policy.yaml");
  const auto refused = answer_of(work, {"run", "--json", "--policy", "policy.yaml", "--", "true"});
  CHECK(refused.code == 125);
  const auto lines = lines_of(refused.out);
  REQUIRE(lines.size() >= 1);
  CHECK(lines.back().at("type") == json::value("error"));
  CHECK(lines.back().at("error").at("code") == json::value("unenforceable"));
  const auto late =
      run(run_words + arguments{"--json", "--timeout", "200ms", "--", "sleep", "1000"}, in(work));
  CHECK(late.code == 137);
  CHECK(contains(late.out, "\"timeout\""));
}

TEST_CASE("run --json whose reader goes away ends the command") {
  const temporary_directory work;
  auto command = running::start(
      run_words + arguments{"--json", "--", "sh", "-c", "echo first; while :; do echo more; done"}, in(work));
  REQUIRE(command.wait_for("first"));
  command.close_output();
  const auto result = command.wait();
  CHECK_FALSE(result.timed_out);
  CHECK(result.code == 141);
}

TEST_CASE("a memory limit of each process is told apart from one of the session, by run, wrap and explain") {
  const temporary_directory work;
  const auto probe = run({ccbox_program(), "probe", "--json"}, in(work));
  const auto limits = json::parse(probe.out).at("limits");
  const bool weaker = limits.at("memory") == "rlimit";
  const arguments wanted{"--memory", "1G", "--file-size", "1G"};
  const auto loud = run(arguments{ccbox_program(), "run"} + wanted + arguments{"--", "/bin/true"}, in(work));
  CHECK(loud.code == 0);
  CHECK(contains(loud.err, "ccbox: warning: the memory limit holds for the address space of each process") ==
        weaker);
  CHECK(run(arguments{ccbox_program(), "run", "-q"} + wanted + arguments{"--", "/bin/true"}, in(work)).err ==
        "");
  const auto wrapped =
      run(arguments{ccbox_program(), "wrap"} + wanted + arguments{"--", "/bin/true"}, in(work));
  CHECK(wrapped.code == 0);
  CHECK(contains(wrapped.err,
                 "ccbox: warning: the memory limit holds for the address space of each process") == weaker);
  const auto text = run(arguments{ccbox_program(), "explain"} + wanted, in(work));
  CHECK(contains(text.out, "Limits (limit, enforced by)"));
  CHECK(contains(text.out, weaker ? "rlimit, address space of each process" : ", of the session"));
  const auto answer = run(arguments{ccbox_program(), "explain", "--json"} + wanted, in(work));
  const auto shown = json::parse(answer.out).at("limits").as_object();
  CHECK(shown.size() == 2);
  CHECK(shown.at("fileSize") == "rlimit, of each file");
}
