// `ccbox run`: what goes in and out of a command, and its exit code.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "cli_support.hpp"

using namespace ccbox::test;

TEST_CASE("the command's exit code is ccbox's") {
  const temporary_directory work;
  for (const int code : {0, 1, 7, 124, 255}) {
    CHECK(enclosed(work, {"sh", "-c", "exit " + std::to_string(code)}).code == code);
  }
}

TEST_CASE("a command that does not exist answers 127, one that cannot be executed 126") {
  const temporary_directory work;
  const auto missing = enclosed(work, {"no-such-program-here"});
  CHECK(missing.code == 127);
  CHECK(contains(missing.err, "ccbox: error: "));
  CHECK(contains(missing.err, "no-such-program-here"));
  CHECK(enclosed(work, {"./missing"}).code == 127);
  ::chmod(work.write("plain.txt", "text\n").c_str(), 0644);
  CHECK(enclosed(work, {"./plain.txt"}).code == 126);
  CHECK(enclosed(work, {"/usr"}).code == 126);
}

TEST_CASE("a command that a signal ended answers 128 and the signal") {
  const temporary_directory work;
  CHECK(enclosed(work, {"sh", "-c", "kill -TERM $$"}).code == 143);
  CHECK(enclosed(work, {"sh", "-c", "kill -KILL $$"}).code == 137);
  CHECK(enclosed(work, {"sh", "-c", "kill -INT $$"}).code == 130);
}

TEST_CASE("arguments reach the command byte for byte") {
  const temporary_directory work;
  const arguments words{"two words",   "",   "'single'", "\"double\"", "new\nline", "$HOME", "*",        "!",
                        "back\\slash", "-c", "--",       "--version",  "\xff\xfe",  "ü",     "trailing "};
  const auto result = enclosed(work, arguments{"printf", "%s\\0"} + words);
  REQUIRE(result.code == 0);
  std::string expected;
  for (const std::string& word : words)
    expected += word + '\0';
  CHECK(result.out == expected);
}

TEST_CASE("nothing after the first word of the command is an option of ccbox") {
  const temporary_directory work;
  const auto result =
      run(run_words + arguments{"echo", "--version", "-c", "-s", "-d", "--bind", "--help", "--"}, in(work));
  CHECK(result.code == 0);
  CHECK(result.out == "--version -c -s -d --bind --help --\n");
}

TEST_CASE("a command that begins with a dash follows `--`") {
  const temporary_directory work;
  ::chmod(work.write("bin/-tool", "#!/bin/sh\necho tool \"$@\"\n").c_str(), 0755);
  const auto result = run(run_words + arguments{"--", "bin/-tool", "-x"}, in(work));
  CHECK(result.out == "tool -x\n");
  // The word after `--` is the command, whatever it looks like.
  CHECK(run(run_words + arguments{"--", "--version"}, in(work)).code == 127);
}

TEST_CASE("standard input is passed through to its end") {
  const temporary_directory work;
  run_options options = in(work);
  options.input = std::string(3 << 20, 'x') + "end";
  const auto result = run(run_words + arguments{"--", "sh", "-c", "cat | wc -c; cat"}, options);
  CHECK(result.code == 0);
  CHECK(result.out == std::to_string(options.input.size()) + "\n");
}

TEST_CASE("large outputs come through both pipes whole") {
  const temporary_directory work;
  const auto result = enclosed(
      work,
      {"sh", "-c", "head -c 5000000 /dev/zero | tr '\\0' a; head -c 3000000 /dev/zero | tr '\\0' b >&2"});
  CHECK(result.code == 0);
  CHECK(result.out == std::string(5000000, 'a'));
  CHECK(result.err == std::string(3000000, 'b'));
}

TEST_CASE("descriptors that are no terminals are the caller's own") {
  const temporary_directory work;
  const auto result = enclosed(work, {"sh", "-c", "test -p /dev/stdout && test ! -t 1 && echo pipe"});
  CHECK(result.out == "pipe\n");
}

TEST_CASE("only the three standard descriptors reach the command") {
  const temporary_directory work;
  const std::string secret = work.write("secret", "s");
  const ccbox::unique_fd held(::open(secret.c_str(), O_RDONLY | O_CLOEXEC));
  run_options options = in(work);
  options.inherit = {{held.get(), 7}, {held.get(), 1000}};
  const auto result =
      run(run_words + arguments{"--", "sh", "-c", "ls /proc/self/fd | tr '\\n' ' '"}, options);
  CHECK(result.out == "0 1 2 3 ");  // 3 is the directory that ls has open
}

TEST_CASE("closed standard descriptors are empty ones, not somebody else's file") {
  const temporary_directory work;
  run_options options = in(work);
  options.closed = {0};
  const auto result =
      run(run_words + arguments{"--", "sh", "-c", "wc -c; readlink /proc/self/fd/0"}, options);
  CHECK(result.code == 0);
  CHECK(contains(result.out, "0\n"));
  options.closed = {0, 1, 2};
  CHECK(run(run_words + arguments{"--", "sh", "-c", "echo into nothing; exit 5"}, options).code == 5);
}

TEST_CASE("a reader that goes away ends the writer and is no error of ccbox") {
  const temporary_directory work;
  auto command = running::start(run_words + arguments{"--", "sh", "-c", "echo first; yes"}, in(work));
  REQUIRE(command.wait_for("first"));
  command.close_output();
  const auto result = command.wait();
  CHECK_FALSE(result.timed_out);
  CHECK(result.code == 141);
  CHECK_FALSE(contains(result.err, "internal error"));
}

TEST_CASE("what the command leaves in the background ends with it") {
  const temporary_directory work;
  const std::string marker = "86399." + std::to_string(::getpid());
  const auto result = enclosed(work, {"sh", "-c",
                                      "sleep " + marker + " & (trap '' TERM HUP; setsid sleep " + marker +
                                          ") & "
                                          "until test -n \"$(pgrep -f '^sleep " +
                                          marker + "' | sed -n 2p)\"; do :; done; echo started"});
  CHECK(result.code == 0);
  CHECK(result.out == "started\n");
  CHECK(eventually([&] { return processes_with(marker).empty(); }));
}

TEST_CASE("a background process that holds the output does not hold ccbox") {
  const temporary_directory work;
  const auto result = enclosed(work, {"sh", "-c", "sleep 1000 & echo done"});
  CHECK_FALSE(result.timed_out);
  CHECK(result.out == "done\n");
}

TEST_CASE("the work directory is written and read, and keeps what was written") {
  const temporary_directory work;
  work.write("input", "given");
  const auto result = enclosed(work, {"sh", "-c", "cat input; printf made > output; pwd"});
  CHECK(result.out == "given" + work.path() + "\n");
  CHECK(read_file(work / "output") == "made");
}

TEST_CASE("directory names are taken literally") {
  const temporary_directory parent;
  for (const std::string name :
       {"[WIP] a*b?", "new\nline", "back\\slash", "quote'\"", "\xff\xfe", "-dash", "co:lon", " "}) {
    INFO(name);
    parent.write(name + "/file", "here");
    run_options options;
    options.cwd = parent / name;
    const auto result = run(run_words + arguments{"--", "cat", "file"}, options);
    CHECK(result.out == "here");
    CHECK(result.code == 0);
  }
}

TEST_CASE("binds: writable, read-only, elsewhere, and with a colon in the name") {
  const temporary_directory work, other;
  other.write("data", "outside");
  other.write("co:lon/data", "colon");
  const auto with = [&](const arguments& options, const std::string& script) {
    return run(run_words + options + arguments{"--", "sh", "-c", script}, in(work));
  };
  CHECK(with({"--ro", other.path() + ":/mnt/other", "--bind", "."}, "cat /mnt/other/data").out == "outside");
  CHECK(with({"--ro", other.path()}, "echo x > " + other.path() + "/new").code != 0);
  CHECK_FALSE(exists(other / "new"));
  CHECK(with({"--bind", other.path() + ":/mnt/rw"}, "echo x > /mnt/rw/new").code == 0);
  CHECK(exists(other / "new"));
  CHECK(with({"--mount", other / "co:lon", "/mnt/co:lon", "ro"}, "cat /mnt/co:lon/data").out == "colon");
  const auto ambiguous = with({"--ro", other / "co:lon"}, "true");
  CHECK(ambiguous.code == 125);
  CHECK(contains(ambiguous.err, "--mount"));
}

TEST_CASE("the current directory is where the command starts, if a bind shows it") {
  const temporary_directory work;
  work.write("sub/file", "");
  run_options options;
  options.cwd = work / "sub";
  CHECK(run(run_words + arguments{"--bind", "..", "--", "pwd"}, options).out == work / "sub" + "\n");
  CHECK(run(run_words + arguments{"--bind", "..:/mnt/w", "--", "pwd"}, options).out == "/mnt/w/sub\n");
  CHECK(run(run_words + arguments{"--bind", "..", "--workdir", work.path(), "--", "pwd"}, options).out ==
        work.path() + "\n");
}

TEST_CASE("modes other than chat make the work directory read-only, but for what is the runner's") {
  const temporary_directory work;
  work.write("state/keep", "");
  for (const std::string mode : {"review", "plan", "orchestrate"}) {
    const auto result = run(run_words + arguments{"--mode", mode, "--state-dir", "state", "--", "sh", "-c",
                                                  "echo x > file; echo y > state/file"},
                            in(work));
    CHECK_FALSE(exists(work / "file"));
    CHECK(read_file(work / "state/file") == "y\n");
  }
}

TEST_CASE("variables are passed by name, by value, or not at all") {
  const temporary_directory work;
  run_options options = in(work);
  options.extra_env = {"PASSED=from the caller", "DROPPED_TOKEN=secret", "LD_PRELOAD="};
  const auto result =
      run(run_words + arguments{"--env", "PASSED", "--env", "GIVEN=a=b c", "--", "env"}, options);
  CHECK(contains(result.out, "PASSED=from the caller\n"));
  CHECK(contains(result.out, "GIVEN=a=b c\n"));
  CHECK_FALSE(contains(result.out, "DROPPED_TOKEN"));
  const auto unset = run(run_words + arguments{"--env", "NOT_SET_ANYWHERE", "--", "env"}, options);
  CHECK(unset.code == 125);
  CHECK(contains(unset.err, "NOT_SET_ANYWHERE"));
}

TEST_CASE("HOME and the temporary directory exist inside and are the session's own") {
  const temporary_directory work;
  const auto result = enclosed(work, {"sh", "-c",
                                      "f=$(mktemp) && echo x > \"$f\" && echo y > \"$HOME/probe\" && "
                                      "cd && test -e probe && echo good"});
  CHECK(result.out == "good\n");
  CHECK(result.err == "");
}

TEST_CASE("twelve runs at once in one directory all succeed") {
  const temporary_directory work;
  std::vector<running> runs;
  for (int i = 0; i < 12; ++i) {
    runs.push_back(running::start(
        run_words + arguments{"--", "sh", "-c", "echo $1 > out.$1; exit $1", "sh", std::to_string(i)},
        in(work)));
  }
  for (int i = 0; i < 12; ++i) {
    CHECK(runs[static_cast<std::size_t>(i)].wait().code == i);
    CHECK(read_file(work / ("out." + std::to_string(i))) == std::to_string(i) + "\n");
  }
}

TEST_CASE("a run leaves nothing in the work directory that the command did not make") {
  const temporary_directory work;
  work.write("only", "");
  CHECK(enclosed(work, {"ls", "-A"}).out == "only\n");
  CHECK(run({"ls", "-A"}, in(work)).out == "only\n");
}

TEST_CASE("a run that is longer than its wall time is killed and says so") {
  const temporary_directory work;
  const auto result = run(run_words + arguments{"--timeout", "300ms", "--", "sleep", "1000"}, in(work));
  CHECK(result.code == 137);
  CHECK(contains(result.err, "ccbox: killed: timeout"));
  CHECK(contains(result.err, "300 ms"));
}

TEST_CASE("a file that is larger than its limit is cut off with SIGXFSZ") {
  const temporary_directory work;
  const auto result = run(run_words + arguments{"--file-size", "64K", "--", "sh", "-c",
                                                "head -c 1000000 /dev/zero > big; stat -c %s big"},
                          in(work));
  CHECK(result.out == "65536\n");
}

TEST_CASE("an exit by SIGXFSZ is explained where there is a limit of file sizes, unless it is to be quiet") {
  const temporary_directory work;
  const arguments killed{"--", "sh", "-c", "head -c 1000000 /dev/zero > big"};
  const arguments aloud{ccbox_program(), "run"};
  const auto loud = run(aloud + arguments{"--file-size", "64K"} + killed, in(work));
  CHECK(loud.code == 153);
  CHECK_MESSAGE(
      contains(loud.err,
               "ccbox: exit code 153 is that of SIGXFSZ: it ends a program that writes a file beyond the "
               "limit of 65536 bytes (--file-size)\n"),
      loud.err);
  CHECK_FALSE(contains(run(aloud + arguments{"-q", "--file-size", "64K"} + killed, in(work)).err, "SIGXFSZ"));
  CHECK_FALSE(contains(run(aloud + arguments{"--", "sh", "-c", "exit 153"}, in(work)).err, "SIGXFSZ"));
}

TEST_CASE("backend none runs unconfined and says so loudly, once") {
  const temporary_directory work;
  const auto result =
      run({ccbox_program(), "run", "--backend", "none", "--", "sh", "-c", "exit 3"}, in(work));
  CHECK(contains(result.err, "RUNNING UNCONFINED"));
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  CHECK(result.code == 3);
}

TEST_CASE("arguments and variables that are too large are refused before anything starts") {
  const temporary_directory work;
  const auto argument = enclosed(work, {"true", std::string(131073, 'x')});
  // The kernel of the host refuses this one on the way to ccbox itself.
  CHECK(argument.code != 0);
  arguments many{"true"};
  for (int i = 0; i < 15; ++i)
    many.push_back(std::string(100000, 'y'));
  const auto accepted = enclosed(work, many);
  CHECK(accepted.code == 0);
  run_options options = in(work);
  arguments env;
  for (int i = 0; i < 40; ++i)
    options.extra_env.push_back("BIG_" + std::to_string(i) + "=" + std::string(30000, 'z'));
  CHECK(run(run_words + arguments{"--", "true"}, options).code == 0);
}

TEST_CASE("--processes is the number of the commands' processes, with name rules and without") {
  const temporary_directory work;
  const std::string fork_until_refused =
      "import os, time\nn = 1\nwhile n < 40:\n  try: child = os.fork()\n  except OSError: break\n"
      "  if child == 0: time.sleep(1000)\n  n += 1\nprint(n)\n";
  for (const arguments& rules : {arguments{}, arguments{"--without", "fs_name_deny"}}) {
    const auto counted = run(arguments{ccbox_program(), "run", "--quiet"} + rules +
                                 arguments{"--processes", "7", "--", "python3", "-c", fork_until_refused},
                             in(work));
    CHECK_MESSAGE(counted.out == "7\n", counted.err);
  }
}

TEST_CASE("two processes may use one session id at the same time") {
  const temporary_directory work;
  const arguments words = run_words + arguments{"--session", "same", "--memory", "256M", "--"};
  auto first = running::start(words + arguments{"sh", "-c", "echo ready; cat; exit 3"}, [&] {
    run_options how = in(work);
    how.input = std::string(1 << 20, 'x');  // more than a pipe takes: it ends when its output is read
    return how;
  }());
  REQUIRE(first.wait_for("ready"));
  const auto second = run(words + arguments{"sh", "-c", "exit 4"}, in(work));
  CHECK(second.code == 4);
  const auto ended = first.wait();
  CHECK(ended.code == 3);
  CHECK(ended.out.size() == 6 + (1 << 20));
}
