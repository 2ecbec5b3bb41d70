#include <doctest/doctest.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "support/init_process.hpp"

using namespace ccbox;
using namespace ccbox::init;
using ccbox::test::init_process;
using ccbox::test::init_setting;

namespace {

// Reads from a terminal's master until `wanted` appears.
bool shows(int master, std::string& seen, const std::string& wanted) {
  while (seen.find(wanted) == std::string::npos) {
    pollfd readable{master, POLLIN, 0};
    char buffer[1024];
    if (poll(&readable, 1, 10000) != 1) return false;
    const ssize_t got = read(master, buffer, sizeof buffer);
    if (got <= 0) return false;
    seen.append(buffer, static_cast<std::size_t>(got));
  }
  return true;
}

void type(int master, const std::string& text) {
  REQUIRE(write(master, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

}  // namespace

TEST_CASE("a terminal is the controlling one, has the size asked for and job control") {
  for (const auto setting : {init_setting::enclosed, init_setting::unconfined}) {
    init_process init(setting);
    auto message = init_process::command({"bash", "--norc", "--noprofile", "-i"});
    message.env.push_back("PS1=$ ");
    message.flags = exec_pty;
    message.rows = 33;
    message.cols = 99;
    const auto id = init.exec(message);
    auto started = init.wait_for(frame_type::started, id);
    REQUIRE(started.descriptors.size() == 1);
    const int master = started.descriptors[0].get();
    std::string seen;
    type(master, "stty size; tty; cat </dev/tty\n");
    CHECK(shows(master, seen, "33 99\r\n/dev/pts/"));
    type(master, "to cat\n");
    CHECK(shows(master, seen, "to cat\r\nto cat\r\n"));
    type(master, "\x1a");  // ^Z
    CHECK(shows(master, seen, "Stopped"));
    seen.clear();
    type(master, "fg\n");
    CHECK(shows(master, seen, "cat < /dev/tty\r\n"));
    type(master, "more\n");
    CHECK(shows(master, seen, "more\r\nmore\r\n"));
    seen.clear();
    type(master, "\x03");  // ^C
    CHECK(shows(master, seen, "$ "));
    type(master, "echo code $?\n");
    CHECK(shows(master, seen, "code 130"));
    const winsize size{40, 120, 0, 0};
    REQUIRE(ioctl(master, TIOCSWINSZ, &size) == 0);
    type(master, "stty size\n");
    CHECK(shows(master, seen, "40 120"));
    CHECK(seen.find("no job control") == std::string::npos);
    type(master, "exit 3\n");
    CHECK(init.wait_exit(id).value == 3);
  }
}

TEST_CASE("descriptors that are sent beside a terminal take precedence over it") {
  init_process init(init_setting::enclosed);
  const unique_fd out(memfd_create("out", MFD_CLOEXEC));
  auto message = init_process::shell("test -t 0 && ! test -t 1 && test -t 2 && echo fine");
  message.flags = exec_pty | exec_stdout;
  const auto id = init.exec(message, {out.get()});
  CHECK(init.wait_exit(id).value == 0);
}

TEST_CASE("a signal to a command with a terminal reaches the job in its foreground too") {
  init_process init(init_setting::enclosed);
  auto message = init_process::command({"bash", "--norc", "--noprofile", "-i"});
  message.flags = exec_pty;
  const auto id = init.exec(message);
  auto started = init.wait_for(frame_type::started, id);
  const int master = started.descriptors[0].get();
  std::string seen;
  type(master,
       "trap 'echo shell-too' USR1; sh -c 'trap \"echo got-it; exit 5\" USR1; echo up-and-running; while :; "
       "do sleep 0.05; done'; echo "
       "code=$?\n");
  REQUIRE(shows(master, seen, "\r\nup-and-running"));
  init.signal(id, SIGUSR1);
  CHECK(shows(master, seen, "\r\ngot-it"));
  CHECK(shows(master, seen, "\r\ncode=5"));
  CHECK(shows(master, seen, "\r\nshell-too"));
}

TEST_CASE("closing the master hangs up the command") {
  init_process init(init_setting::enclosed);
  auto message = init_process::command({"cat"});
  message.flags = exec_pty;
  const auto id = init.exec(message);
  init.wait_for(frame_type::started, id);  // its descriptor is closed here
  CHECK(init.wait_exit(id).value == SIGHUP);
}
