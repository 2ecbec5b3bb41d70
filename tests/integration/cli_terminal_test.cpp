// `ccbox run` on a terminal: what a person at the keyboard gets.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "cli_support.hpp"

using namespace ccbox::test;

namespace {

on_terminal at_terminal(const temporary_directory& work, const arguments& command,
                        on_terminal::where which = {}) {
  return on_terminal::start(run_words + arguments{"--bind", work.path(), "--"} + command, 24, 80, which);
}

}  // namespace

TEST_CASE("the command gets a terminal of its own of the caller's size") {
  const temporary_directory work;
  auto session = at_terminal(
      work, {"sh", "-c", "tty; stty size; test -t 0 && test -t 1 && test -t 2 && echo all three"});
  CHECK(session.wait_for("/dev/pts/"));
  CHECK(session.wait_for("24 80"));
  CHECK(session.wait_for("all three"));
  CHECK(session.wait() == 0);
}

TEST_CASE("the size inside follows the caller's terminal") {
  const temporary_directory work;
  auto session = at_terminal(
      work, {"bash", "-c", "trap 'stty size; exit 0' WINCH; echo waiting; while :; do sleep 0.05; done"});
  REQUIRE(session.wait_for("waiting"));
  session.resize(50, 132);
  CHECK(session.wait_for("50 132"));
  CHECK(session.wait() == 0);
}

TEST_CASE("keys reach the command unchanged and the caller's terminal is raw meanwhile") {
  const temporary_directory work;
  auto session = at_terminal(work, {"sh", "-c", "stty raw -echo; echo ready; head -c 4 | od -An -tx1"});
  REQUIRE(session.wait_for("ready"));
  CHECK(session.in_raw_mode());
  session.type("\x03\x1a\x1c\x04");
  CHECK(session.wait_for("03 1a 1c 04"));
  CHECK(session.wait() == 0);
  CHECK_FALSE(session.in_raw_mode());
}

TEST_CASE("an interactive shell has job control: Ctrl-C reaches the foreground job only") {
  const temporary_directory work;
  const std::string own = std::to_string(::getpid());  // other processes' sleeps are not ours
  const auto sleeps = [](const std::string& seconds) {
    return !processes_with(std::string("sleep\0", 6) + seconds).empty();
  };
  auto session = at_terminal(work, {"bash", "--norc", "--noprofile", "-i"});
  session.type("PS1='ready> '\n");
  REQUIRE(session.wait_for("ready> "));
  session.type("sleep 1000 & echo back$((1+1))ground\n");
  REQUIRE(session.wait_for("back2ground"));
  session.type("echo fore$((1+1))ground; sleep 2000." + own + "\n");
  REQUIRE(session.wait_for("fore2ground"));
  REQUIRE(eventually([&] { return sleeps("2000." + own); }));
  session.type("\x03");
  session.type("echo code=$?; jobs\n");
  CHECK(session.wait_for("code=130"));
  CHECK(session.wait_for("Running"));
  session.type("sleep 3000." + own + "\n");
  REQUIRE(eventually([&] { return sleeps("3000." + own); }));
  session.type("\x1a");
  CHECK(session.wait_for("Stopped"));
  session.type("kill %1 %2; exit 9\n");
  session.type("exit 9\n");
  CHECK(session.wait() == 9);
  CHECK_FALSE(contains(session.screen(), "no job control"));
  CHECK_FALSE(contains(session.screen(), "cannot set terminal process group"));
}

TEST_CASE("the terminal's modes are back after every way to end") {
  const temporary_directory work;
  for (const int number : {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGALRM, SIGABRT}) {
    CAPTURE(number);
    auto session = at_terminal(work, {"sh", "-c", "echo ready; sleep 1000"});
    REQUIRE(session.wait_for("ready"));
    REQUIRE(eventually([&] { return session.in_raw_mode(); }));
    session.signal(number);
    CHECK(session.wait() == 128 + number);
    CHECK_FALSE(session.in_raw_mode());
  }
  auto failing = at_terminal(work, {"no-such-program-here"});
  CHECK(failing.wait() == 127);
  CHECK_FALSE(failing.in_raw_mode());
}

TEST_CASE("output that is no terminal goes straight to its file while the keyboard stays connected") {
  const temporary_directory work;
  const ccbox::unique_fd file(::open((work / "out").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  auto session =
      at_terminal(work, {"sh", "-c", "echo prompt >&2; read -r line; test ! -t 1; echo \"got $line $?\""},
                  {true, false, true, file.get()});
  REQUIRE(session.wait_for("prompt"));
  CHECK_FALSE(session.in_raw_mode());
  session.type("typed\n");
  CHECK(session.wait() == 0);
  CHECK(read_file(work / "out") == "got typed 0\n");
}

TEST_CASE("the end of a line-mode input reaches the command") {
  const temporary_directory work;
  const ccbox::unique_fd file(::open((work / "out").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  auto session = at_terminal(work, {"sh", "-c", "echo prompt >&2; wc -c"}, {true, false, true, file.get()});
  REQUIRE(session.wait_for("prompt"));
  session.type("abc\n\x04");
  CHECK(session.wait() == 0);
  CHECK(read_file(work / "out") == "4\n");
}

TEST_CASE("a large output to the terminal arrives whole before ccbox ends") {
  const temporary_directory work;
  auto session = at_terminal(work, {"sh", "-c", "seq 1 200000; echo the end"});
  CHECK(session.wait() == 0);
  CHECK(contains(session.screen(), "\n200000\r\nthe end\r\n"));
}

TEST_CASE("SIGTSTP stops the command and ccbox with the terminal as it was; SIGCONT resumes both") {
  const temporary_directory work;
  auto session = at_terminal(work, {"sh", "-c", "echo ready; read -r line; echo \"got $line\""});
  REQUIRE(session.wait_for("ready"));
  REQUIRE(eventually([&] { return session.in_raw_mode(); }));
  session.signal(SIGTSTP);
  REQUIRE(session.wait_until_stopped());
  CHECK_FALSE(session.in_raw_mode());
  session.signal(SIGCONT);
  REQUIRE(eventually([&] { return session.in_raw_mode(); }));
  session.type("more\r");
  CHECK(session.wait_for("got more"));
  CHECK(session.wait() == 0);
}

TEST_CASE("in the background the terminal is neither read nor changed") {
  const temporary_directory work;
  std::string command;
  for (const std::string& word : run_words)
    command += word + " ";
  auto shell = on_terminal::start({"bash", "--norc", "--noprofile", "-i"}, 24, 80);
  shell.type("PS1='ready> '\n");
  REQUIRE(shell.wait_for("ready> "));
  shell.type(command + "--bind " + work.path() + " -- sh -c 'echo in the $1; until test -e " + (work / "go") +
             "; do :; done' sh background &\n");
  REQUIRE(shell.wait_for("in the background"));
  shell.type("echo still $((40+2))\n");
  CHECK(shell.wait_for("still 42"));
  shell.type("jobs\n");
  CHECK(shell.wait_for("Running"));
  shell.type("touch " + (work / "go") + "; wait; echo waited $((1+1))\n");
  CHECK(shell.wait_for("waited 2"));
  shell.type("exit\n");
  CHECK(shell.wait() == 0);
}

TEST_CASE("--pty never passes the terminal's descriptors as they are") {
  const temporary_directory work;
  auto session = on_terminal::start(run_words + arguments{"--pty", "never", "--bind", work.path(), "--", "sh",
                                                          "-c", "echo plain; sleep 1000"},
                                    24, 80);
  REQUIRE(session.wait_for("plain"));
  CHECK_FALSE(session.in_raw_mode());
  session.signal(SIGTERM);
  CHECK(session.wait() == 143);
}

TEST_CASE("--pty never: the command has no terminal, and lines and output pass all the same") {
  const temporary_directory work;
  auto session = on_terminal::start(
      run_words +
          arguments{"--bind", work.path(), "--pty", "never", "--", "sh", "-c",
                    "for n in 0 1 2; do test -t $n && echo terminal $n; done; echo ready; cat; echo bye >&2"},
      24, 80);
  REQUIRE(session.wait_for("ready"));
  CHECK_FALSE(session.in_raw_mode());
  session.type("a line\n");
  CHECK(session.wait_for("a line\r\na line"));  // typed, and said by cat
  session.type("\x04");
  CHECK(session.wait_for("bye"));
  CHECK(session.wait() == 0);
  CHECK_FALSE(contains(session.screen(), "terminal "));
}

TEST_CASE("--json: a terminal as standard input is read by lines and not handed over") {
  const temporary_directory work;
  auto session =
      on_terminal::start(run_words + arguments{"--bind", work.path(), "--json", "--", "sh", "-c",
                                               "test -t 0 || echo no terminal; read -r line; echo got $line"},
                         24, 200);
  CHECK(session.wait_for("no terminal"));
  session.type("typed\n");
  CHECK(session.wait_for("got typed"));
  CHECK(session.wait() == 0);
}

TEST_CASE("--pty never: Ctrl-C ends the command, and in the background nothing is read") {
  const temporary_directory work;
  auto session = on_terminal::start(run_words + arguments{"--bind", work.path(), "--pty", "never", "--", "sh",
                                                          "-c", "echo ready; sleep 1000"},
                                    24, 80);
  REQUIRE(session.wait_for("ready"));
  session.type("\x03");
  CHECK(session.wait() == 128 + SIGINT);

  std::string words;
  for (const std::string& word :
       run_words + arguments{"--bind", work.path(), "--pty", "never", "--", "sleep", "1000"})
    words += word + " ";
  auto shell = on_terminal::start({"bash", "--norc", "--noprofile", "-i"}, 24, 80);
  shell.type("PS1='ready> '\n");
  REQUIRE(shell.wait_for("ready> "));
  shell.type(words + "&\n");
  REQUIRE(shell.wait_for("ready> "));
  shell.type("echo typed$((1+1))here\n");
  CHECK(shell.wait_for("typed2here"));
  shell.type("kill %1; wait; exit\n");
  CHECK(shell.wait() >= 0);
}
