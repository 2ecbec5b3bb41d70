// What ccbox refuses before it starts anything: exit code 125, the object, the cause and the remedy.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "cli_support.hpp"
#include "support/listening_socket.hpp"

using namespace ccbox::test;

namespace {

// Refused, with `parts` in the message and a hint.
void check_refused(const arguments& words, const run_options& options, const arguments& parts) {
  const auto result = run(arguments{ccbox_program()} + words, options);
  std::string shown;
  for (const std::string& word : words)
    shown += word + " ";
  CAPTURE(shown);
  CAPTURE(result.err);
  CHECK(result.code == 125);
  CHECK(result.out == "");
  CHECK(contains(result.err, "ccbox: error: "));
  for (const std::string& part : parts)
    CHECK(contains(result.err, part));
}

}  // namespace

TEST_CASE("a path with `..` that is missing is told with its option") {
  const temporary_directory work;
  for (const std::string option : {"--bind", "--ro", "--protect", "--state-dir", "--exec-grant"}) {
    const auto refused = run({ccbox_program(), "run", option, "../none/such", "--", "true"}, in(work));
    CHECK(refused.code == 125);
    CHECK_MESSAGE(contains(refused.err, "ccbox: error: " + option + " '../none/such': realpath "),
                  refused.err);
  }
}

TEST_CASE("a malformed command line is refused with a remedy") {
  const temporary_directory work;
  const auto options = in(work);
  check_refused({"frobnicate"}, options, {"'frobnicate'", "ccbox: hint: ", "ccbox help"});
  check_refused({"run"}, options, {"`COMMAND` is missing", "for example: ccbox run -- make test"});
  check_refused({"run", "--"}, options, {"ccbox: hint: "});
  check_refused({"run", ""}, options, {"the command is empty"});
  check_refused({"run", "--no-such-option", "true"}, options, {"'--no-such-option'", "ccbox run --help"});
  check_refused({"run", "-x", "true"}, options, {"'-x'", "put `--` before"});
  check_refused({"run", "--bind"}, options, {"--bind", "needs a value"});
  check_refused({"run", "--mount", "/a", "/b"}, options, {"--mount", "needs 3 values"});
  check_refused({"run", "--mount", "/a", "--", "true"}, options, {"--mount", "needs 3 values"});
  check_refused({"run", "--mount", "/a", "/b", "rx", "--", "true"}, options, {"'rx'", "ro|rw"});
  check_refused({"run", "--json=yes", "true"}, options, {"--json"});
  check_refused({"run", "--workdir=", "true"}, options, {"--workdir"});
  check_refused({"run", "--workdir", "/a", "--workdir", "/b", "true"}, options, {"--workdir is given twice"});
  check_refused({"run", "--pty", "maybe", "true"}, options, {"'maybe'", "always"});
  check_refused({"run", "--mode", "yolo", "true"}, options, {"'yolo'", "orchestrate"});
  check_refused({"run", "--session", "a b", "true"}, options, {"--session 'a b' is no session id"});
  check_refused({"run", "--env", "9LIVES=1", "true"}, options, {"'9LIVES'"});
  check_refused({"run", "--backend", "no-such", "true"}, options, {"no-such"});
  check_refused({"run", "--pty", "always", "true"}, options, {"--json"});
  check_refused({"plugin"}, options, {"new NAME"});
  check_refused({"check", "port", "x"}, options, {"'port'"});
  check_refused({"check"}, options, {"`path PATH | domain HOST[:PORT]` is missing", "ccbox check path "});
  check_refused({"check", "foo"}, options, {"cannot check 'foo'", "domain HOST[:PORT]"});
  check_refused({"check", "domain"}, options, {"`HOST[:PORT]` is missing", "ccbox check domain example.com"});
  check_refused({"check", "path"}, options, {"`PATH` is missing", "usage: ccbox check path PATH"});
  check_refused({"plugin", "new"}, options, {"`NAME` is missing", "for example: ccbox plugin new "});
  check_refused({"probe", "extra"}, options, {"'extra'"});
}

TEST_CASE("what is missing or malformed is refused with a hint of its own") {
  const temporary_directory work;
  const auto options = in(work);
  const auto hinted = [&](const arguments& words, const std::string& what, const std::string& hint) {
    check_refused(words, options, {"ccbox: error: " + what, "ccbox: hint: " + hint});
  };
  for (const std::string option : {"--timeout", "--memory", "--file-size", "--cpus", "--processes"})
    hinted({"run", option, "0", "true"}, option + " '0': a limit of nothing",
           "leave the option out for no limit");
  hinted({"run", "--timeout", "0s", "true"}, "--timeout '0s': a limit of nothing", "leave the option out");
  hinted({"run", "--env", "=x", "true"}, "--env '=x': no variable's name", "--env NAME or NAME=VALUE");
  for (const std::string option : {"--policy", "--egress-config"})
    hinted({"run", option, "/nope", "true"}, "open '/nope': No such file",
           "name a configuration file that exists");
  hinted({"run", "--plugins", "/nope", "true"}, "open '/nope': No such file", "the manifest says");
  hinted({"run", "--exec-grant", "missing", "true"},
         "--exec-grant 'missing': '" + work.path() + "/missing' does not exist", "create it first");
  hinted({"proxy", "--listen-http", "127.0.0.1:99999"},
         "--listen-http '127.0.0.1:99999': not a port: 0 to 65535", "127.0.0.1:PORT");
  const listening_socket busy;
  const std::string taken = "127.0.0.1:" + std::to_string(busy.port);
  hinted({"proxy", "--listen-socks", taken}, "listen on '" + taken + "': Address already in use",
         "another program listens there");
  const auto connect = run({ccbox_program(), "net-connect", "host.test", "ssh"}, options);
  CHECK(contains(connect.err, "the port is a number from 1 to 65535, not 'ssh'"));
}

TEST_CASE("a relative --workdir is below where the command would start") {
  const temporary_directory work;
  std::filesystem::create_directories(work / "sub/deep");
  const auto started_in = [&](const arguments& words) {
    const auto done = run(arguments{ccbox_program(), "run", "-q"} + words + arguments{"--", "pwd"}, in(work));
    return done.code == 0 ? done.out : done.err;
  };
  CHECK(started_in({"--workdir", "sub"}) == work / "sub\n");
  CHECK(started_in({"--workdir", "./sub//deep/"}) == work / "sub/deep\n");
  CHECK(started_in({"--workdir", "."}) == work.path() + "\n");
  CHECK(started_in({"--bind", ".:/mnt/w", "--workdir", "sub"}) == "/mnt/w/sub\n");
  CHECK(started_in({"--spec-json", "{\"guestWorkdir\": \"" + work.path() + "/sub\"}", "--workdir", "deep"}) ==
        work / "sub/deep\n");
  check_refused({"run", "--workdir", "none", "true"}, in(work), {"--workdir 'none'", "does not exist"});
  check_refused({"run", "--workdir", "../x", "true"}, in(work), {"--workdir '../x': has `..`", "hint: "});
  check_refused({"run", "--ro", "/usr", "--workdir", "sub", "true"}, in(work),
                {"--workdir 'sub': is relative, and the current directory is not visible inside"});
}

TEST_CASE("help about one question of check speaks of that one, and names no backend that is not there") {
  const auto path = run({ccbox_program(), "check", "path", "--help"}).out;
  const auto domain = run({ccbox_program(), "check", "domain", "--help"}).out;
  const auto both = run({ccbox_program(), "check", "--help"}).out;
  CHECK(contains(path, "usage: ccbox check path PATH"));
  CHECK(contains(path, "--create"));
  CHECK_FALSE(contains(path, "HOST"));
  CHECK(contains(domain, "usage: ccbox check domain HOST[:PORT]"));
  CHECK_FALSE(contains(domain, "--create"));
  CHECK_FALSE(contains(domain, "check path"));
  CHECK(contains(both, "path PATH | domain HOST[:PORT]"));
  CHECK_FALSE(contains(run({ccbox_program(), "run", "--help"}).out, "microvm"));
}

TEST_CASE("malformed sizes, times and numbers are refused") {
  const temporary_directory work;
  for (const std::string text :
       {"", "0", "-1", "1X", "1.5.2", "G", "nan", "inf", "1e400", "99999999999999999999", " 1", "1 G"}) {
    check_refused({"run", "--memory", text, "true"}, in(work), {"--memory"});
    check_refused({"run", "--timeout", text, "true"}, in(work), {"--timeout"});
  }
  for (const std::string text : {"0", "-1", "1.5", "many", ""}) {
    check_refused({"run", "--processes", text, "true"}, in(work), {"--processes"});
  }
  for (const std::string text : {"0", "-1", "all", ""}) {
    check_refused({"run", "--cpus", text, "true"}, in(work), {"--cpus"});
  }
}

TEST_CASE("a policy that demands what no backend here enforces is refused, with the rule and the remedy") {
  const temporary_directory work;
  write_demanding_policy(work, "policy.yaml");
  check_refused({"run", "--policy", "policy.yaml", "--", "touch", "started"}, in(work),
                {"exec_deny", "--without exec_deny"});
  CHECK_FALSE(exists(work / "started"));
}

TEST_CASE("a rule that may not be given up cannot be") {
  const temporary_directory work;
  check_refused({"run", "--without", "pid_isolation", "true"}, in(work), {"pid_isolation"});
  check_refused({"run", "--without", "fs_binds_only", "true"}, in(work), {"fs_binds_only"});
  check_refused({"run", "--without", "no_such_rule", "true"}, in(work), {"no_such_rule"});
}

TEST_CASE("giving up a rule is a warning line on standard error, unless --quiet") {
  const temporary_directory work;
  const arguments words{ccbox_program(), "run", "--without", "fs_name_deny"};
  const auto loud = run(words + arguments{"--", "true"}, in(work));
  CHECK(loud.code == 0);
  CHECK(contains(loud.err, "ccbox: warning: "));
  CHECK(contains(loud.err, "fs_name_deny"));
  CHECK(run(words + arguments{"--quiet", "--", "true"}, in(work)).err == "");
}

TEST_CASE("without a bind, the root, the home directory and what contains it are not made writable") {
  const temporary_directory home;
  home.write("project/file", "");
  run_options options;
  options.extra_env = {"HOME=" + home.path()};
  options.cwd = "/";
  check_refused({"run", "--", "true"}, options, {"the current directory is /", "--bind"});
  options.cwd = home.path();
  check_refused({"run", "--", "true"}, options, {"is your home directory", "--bind"});
  options.extra_env = {"HOME=" + home.path() + "/project"};
  check_refused({"run", "--", "true"}, options, {"contains your home directory", "--bind"});
  options.cwd = home.path() + "/project";
  options.extra_env = {"HOME=" + home.path()};
  CHECK(run(run_words + arguments{"--", "true"}, options).code == 0);
}

TEST_CASE(
    "without a bind, directories of the host, of other accounts and of everybody are not made writable") {
  const temporary_directory home, shared;
  run_options options;
  options.extra_env = {"HOME=" + home.path()};
  for (const std::string host_directory : {"/usr", "/var", "/opt", "/srv", "/mnt", "/media"}) {
    options.cwd = host_directory;
    check_refused({"run", "--", "true"}, options,
                  {"the current directory '" + host_directory + "'", "--bind"});
  }
  // Above the home of an account, and one itself: /usr/sbin belongs to `daemon` on every Debian.
  options.cwd = "/usr/sbin";
  check_refused({"run", "--", "true"}, options, {"home directory of an account", "--bind"});
  options.cwd = "/home";
  check_refused({"run", "--", "true"}, options, {"the current directory '/home'", "--bind"});
  for (const std::string everybodys : {"/tmp", "/var/tmp"}) {
    options.cwd = everybodys;
    check_refused({"run", "--", "true"}, options, {"the current directory '" + everybodys + "'", "--bind"});
  }
  REQUIRE(::chmod(shared.path().c_str(), 01777) == 0);
  check_refused({"run", "--", "true"}, in(shared), {"is shared by all users", "--bind"});
  CHECK(run(run_words + arguments{"--bind", ".", "--", "true"}, in(shared)).code == 0);
  REQUIRE(::chmod(shared.path().c_str(), 0755) == 0);
  CHECK(run(run_words + arguments{"--", "true"}, in(shared)).code == 0);
}

TEST_CASE("a deleted current directory is refused with a clear message") {
  const temporary_directory work;
  const std::string script = "mkdir gone && cd gone && rmdir ../gone && exec " + ccbox_program() + " run ";
  const auto result = run({"sh", "-c", script + "-- true"}, in(work));
  CHECK(result.code == 125);
  CHECK(contains(result.err, "the current directory has no path: it has been deleted"));
  CHECK(contains(result.err, "--bind"));
  const auto elsewhere = run({"sh", "-c", script + "--quiet --bind " + work.path() + " -- pwd"}, in(work));
  CHECK(elsewhere.code == 0);
}

TEST_CASE("a spec that says that nothing is bound binds nothing, the current directory neither") {
  const temporary_directory work;
  work.write("spec.json", R"({"bindMounts": []})");
  work.write("silent.json", "{}");
  const auto nothing =
      run({ccbox_program(), "run", "-q", "--spec", "spec.json", "ls", work / "spec.json"}, in(work));
  CHECK(nothing.code == 2);
  CHECK(contains(nothing.err, "No such file"));
  const auto silent =
      run({ccbox_program(), "run", "-q", "--spec", "silent.json", "ls", "spec.json"}, in(work));
  CHECK(silent.code == 0);
  CHECK(silent.out == "spec.json\n");
}

TEST_CASE("mounts that are missing or malformed are refused by name") {
  const temporary_directory work;
  check_refused({"run", "--bind", "missing", "true"}, in(work), {"missing"});
  check_refused({"run", "--ro", "/proc/self/fd/0", "true"}, in(work), {"/proc/self/fd"});
  check_refused({"run", "--bind", "", "true"}, in(work), {"empty path"});
  check_refused({"run", "--bind", ":/mnt", "true"}, in(work), {"empty path"});
  check_refused({"run", "--bind", ".:relative", "true"}, in(work), {"must be absolute"});
  check_refused({"run", "--bind", ".", "--workdir", "/no/where", "true"}, in(work), {"/no/where"});
}

TEST_CASE("a spec file fills in what the options do not say") {
  const temporary_directory work, other;
  other.write("data", "from the spec");
  const std::string spec = work.write(
      "spec.json", R"({"bindMounts": [{"hostPath": ")" + other.path() +
                       R"(", "guestPath": "/mnt/o", "readOnly": true}], "guestWorkdir": "/mnt/o"})");
  const auto result = run({ccbox_program(), "run", "-q", "--spec", spec, "--", "cat", "data"}, in(work));
  CHECK(result.out == "from the spec");
  const auto piped =
      run({"bash", "-c", ccbox_program() + " run -q --spec <(cat spec.json) -- cat data"}, in(work));
  CHECK(piped.out == "from the spec");
  const auto inline_spec =
      run({ccbox_program(), "run", "-q", "--spec-json", read_file(spec), "--", "pwd"}, in(work));
  CHECK(inline_spec.out == "/mnt/o\n");
}

TEST_CASE("bad spec files are refused, each with its cause") {
  const temporary_directory work;
  const auto options = in(work);
  work.write("broken.json", "{\"mode\": ");
  work.write("list.json", "[]");
  work.write("unknown.json", R"({"sandboxed": true})");
  work.write("type.json", R"({"networkEnabled": "no"})");
  work.write("relative.json", R"({"bindMounts": [{"hostPath": "here", "guestPath": "/x"}]})");
  work.write("deep.json", std::string(2000, '[') + std::string(2000, ']'));
  work.write("large.json", "{\"workspaceId\": \"" + std::string(2 << 20, 'x') + "\"}");
  work.write("empty.json", "");
  std::filesystem::create_directory(work / "directory.json");
  check_refused({"run", "--spec", "missing.json", "true"}, options, {"'missing.json'", "No such file"});
  check_refused({"run", "--spec", "directory.json", "true"}, options, {"'directory.json'", "is a directory"});
  check_refused({"run", "--spec", "broken.json", "true"}, options, {"'broken.json'"});
  check_refused({"run", "--spec", "empty.json", "true"}, options, {"'empty.json'"});
  check_refused({"run", "--spec", "list.json", "true"}, options, {"'list.json'"});
  check_refused({"run", "--spec", "unknown.json", "true"}, options, {"sandboxed"});
  check_refused({"run", "--spec", "type.json", "true"}, options, {"networkEnabled"});
  check_refused({"run", "--spec", "relative.json", "true"}, options, {"bindMounts[0].hostPath"});
  check_refused({"run", "--spec", "deep.json", "true"}, options, {"'deep.json'"});
  check_refused({"run", "--spec", "large.json", "true"}, options, {"1 MiB"});
  check_refused({"run", "--spec", "/dev/zero", "true"}, options, {"is not a file"});
  REQUIRE(::mkfifo((work / "fifo.json").c_str(), 0600) == 0);
  check_refused({"run", "--spec", "fifo.json", "true"}, options, {"'fifo.json'", "nobody writes to it"});
  check_refused({"run", "--spec", "a", "--spec-json", "{}", "true"}, options, {"exclude"});
}

TEST_CASE("config files that are missing, directories or malformed are refused by name") {
  const temporary_directory work;
  const auto options = in(work);
  work.write("bad.yaml", "plugins: [\n");
  work.write("unknown.yaml", "no_such_key: 1\n");
  std::filesystem::create_directory(work / "dir.yaml");
  work.write("open.yaml", "");
  REQUIRE(::chmod((work / "open.yaml").c_str(), 0666) == 0);
  REQUIRE(::mkfifo((work / "fifo.yaml").c_str(), 0600) == 0);
  for (const std::string option : {"--plugins", "--policy"}) {
    check_refused({"run", option, "fifo.yaml", "true"}, options, {"fifo.yaml", "is not a regular file"});
    check_refused({"run", option, "open.yaml", "true"}, options,
                  {"open.yaml", "may be written by group or others", "chmod go-w"});
    check_refused({"run", option, "missing.yaml", "true"}, options, {"missing.yaml"});
    check_refused({"run", option, "dir.yaml", "true"}, options, {"dir.yaml"});
    check_refused({"run", option, "bad.yaml", "true"}, options, {"bad.yaml:"});
    check_refused({"run", option, "unknown.yaml", "true"}, options, {"unknown.yaml:1:", "no_such_key"});
  }
}

TEST_CASE("a file name cannot write to the terminal through a message") {
  const temporary_directory work;
  const auto result = run({ccbox_program(), "run", "--bind", "\x1b[2Jx\ny", "--", "true"}, in(work));
  CHECK(result.code == 125);
  CHECK_FALSE(contains(result.err, "\x1b"));
  CHECK(contains(result.err, "\\x1b[2Jx\\ny"));
}

TEST_CASE("version and help answer on standard output with exit code 0") {
  for (const arguments& words :
       {arguments{"version"}, arguments{"--version"}, arguments{"help"}, arguments{"--help"},
        arguments{"run", "--help"}, arguments{"help", "run"}, arguments{"help", "plugin", "new"},
        arguments{"help", "--help"}, arguments{"help", "version"}, arguments{"help", "plugin"},
        arguments{"plugin", "--help"}}) {
    const auto result = run(arguments{ccbox_program()} + words);
    CHECK(result.code == 0);
    CHECK(result.out != "");
    CHECK(result.err == "");
  }
  CHECK(run({ccbox_program()}).code == 125);
}

TEST_CASE("plugin new writes a project and never touches what exists") {
  const temporary_directory work;
  const auto made = run({ccbox_program(), "plugin", "new", "mine"}, in(work));
  CHECK(made.code == 0);
  CHECK(contains(made.out, "cmake --build build"));
  CHECK(exists(work / "mine/CMakeLists.txt"));
  CHECK(run({ccbox_program(), "plugin", "new", "other", "--directory", work / "else/where"}, in(work)).code ==
        125);
  CHECK(run({ccbox_program(), "plugin", "new", "other", "--directory", work / "elsewhere"}, in(work)).code ==
        0);
  CHECK(exists(work / "elsewhere/CMakeLists.txt"));
  check_refused({"plugin", "new", "mine"}, in(work), {"mine"});
  check_refused({"plugin", "new", "Bad Name"}, in(work), {"Bad Name"});
  check_refused({"plugin", "new", "../up"}, in(work), {"../up"});
  check_refused({"plugin", "new"}, in(work), {"usage: ccbox plugin new NAME"});
}

TEST_CASE("plugin test judges a plugin file") {
  const temporary_directory work;
  const std::string plugin = CCBOX_TEST_BINARY_DIR "/plugins/none.so";
  const auto good = run({ccbox_program(), "plugin", "test", plugin}, in(work));
  CAPTURE(good.out);
  CHECK(good.code == 0);
  CHECK(contains(good.out, "The plugin keeps the contract."));
  work.write("no-plugin.so", "text");
  const auto bad = run({ccbox_program(), "plugin", "test", "no-plugin.so"}, in(work));
  CHECK(bad.code == 1);
  CHECK(contains(bad.out, "failed"));
  check_refused({"plugin", "test", "missing.so"}, in(work), {"missing.so"});
  check_refused({"plugin", "test", plugin, "--option", "novalue"}, in(work), {"'novalue'"});
}

TEST_CASE("an error about a value that an option gave names the option and what was typed") {
  const temporary_directory work;
  const auto options = in(work);
  const arguments with{"run"};
  check_refused({"run", "--memory", "9999T", "true"}, options, {"--memory '9999T': too large"});
  check_refused({"run", "--timeout", "9999999d", "true"}, options, {"--timeout '9999999d': too long"});
  check_refused({"run", "--cpus", "9000", "true"}, options, {"--cpus '9000': must be from 0.01 to 8192"});
  check_refused({"run", "--without", "no_rule", "true"}, options, {"--without 'no_rule' is no rule"});
  check_refused(with + arguments{"--bind", ".", "--bind", "missing", "true"}, options, {"--bind 'missing'"});
  check_refused(with + arguments{"--bind", ".", "--workdir", "/no/where", "true"}, options,
                {"--workdir '/no/where' lies in no mount"});
  check_refused(with + arguments{"--allow-domain", "a b", "true"}, options, {"--allow-domain 'a b'"});
  check_refused({"check", "domain", "example.com", "--allow-domain", "a b"}, options,
                {"--allow-domain 'a b'"});
  const auto from_spec =
      run({ccbox_program(), "run", "--spec-json", R"({"limits":{"memoryBytes":1}})", "--", "true"}, options);
  CHECK(contains(from_spec.err, "limits.memoryBytes: must be from"));
}

TEST_CASE("a variable that changes what programs run is passed with a warning where --env names it") {
  const temporary_directory work;
  const arguments words{"--env", "PYTHONUTF8=1", "--env", "PLAIN=2", "--", "printenv", "PYTHONUTF8"};
  const auto loud = run(arguments{ccbox_program(), "run"} + words, in(work));
  CHECK(loud.out == "1\n");
  CHECK(contains(loud.err, "ccbox: warning: --env PYTHONUTF8: deny list: PYTHON*"));
  CHECK_FALSE(contains(loud.err, "PLAIN"));
  CHECK(run(arguments{ccbox_program(), "run", "-q"} + words, in(work)).err == "");
  CHECK(contains(run(arguments{ccbox_program(), "wrap"} + words, in(work)).err, "--env PYTHONUTF8: "));
  CHECK(run(arguments{ccbox_program(), "wrap", "-q"} + words, in(work)).err == "");
}

TEST_CASE("a spec is read from standard input where its file is -") {
  const temporary_directory work;
  auto options = in(work);
  options.input = "{}";
  CHECK(run({ccbox_program(), "run", "-q", "--spec", "-", "--", "pwd"}, options).out == work.path() + "\n");
  options.input = "";
  check_refused({"run", "--spec", "-", "true"}, options, {"--spec '-'", "not valid JSON"});
}

TEST_CASE("wrap names files without detours") {
  const temporary_directory work;
  std::filesystem::create_directory(work / "project");
  work.write("p.yaml", "plugins:\n  - path: " CCBOX_TEST_BINARY_DIR "/plugins/bubblewrap.so\n");
  const auto wrapped =
      run({ccbox_program(), "wrap", "-q", "--plugins", "project/../p.yaml", "--", "true"}, in(work));
  CHECK(wrapped.code == 0);
  CHECK(contains(wrapped.out, "\"" + work.path() + "/p.yaml\""));
}

TEST_CASE("check path says so where nothing is there") {
  const temporary_directory work;
  work.write("there", "");
  const auto missing = run({ccbox_program(), "check", "path", "missing"}, in(work));
  CHECK(contains(missing.out, "but nothing is there"));
  CHECK_FALSE(contains(run({ccbox_program(), "check", "path", "there"}, in(work)).out, "nothing is there"));
}
