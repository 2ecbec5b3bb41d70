// The mechanism, without a boundary: what a boundary adds is the backends' and the port's to test.
#include "enclosure.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "support/event_loop.hpp"
#include "support/misbehaving_init.hpp"
#include "support/os_faults.hpp"
#include "support/pipe.hpp"
#include "support/result_printing.hpp"
#include "support/temporary_directory.hpp"
#include "support/waiting.hpp"

using namespace ccbox;
using test::init_path;
using test::make_pipe;
using test::pipe_ends;
using test::read_all;
namespace asio = boost::asio;

namespace {

command shell(const std::string& script) {
  command c;
  c.argv = {"sh", "-c", script};
  c.env = {{"PATH", "/usr/bin:/bin"}};
  c.cwd = "/";
  return c;
}

struct fixture {
  test::event_loop loop;

  result<std::unique_ptr<enclosure>> try_start(plan p, unsigned timeout_ms = 10000) {
    auto e = loop.run(enclosure::start(loop.strand(), std::move(p), init_path(), limit_group(), timeout_ms));
    loop.settle();  // what a failed start left to be done at once
    return e;
  }
  std::unique_ptr<enclosure> start(plan p = test::unconfined_plan()) {
    auto e = try_start(std::move(p));
    REQUIRE_MESSAGE(e, e.error().what);
    return std::move(*e);
  }
  result<exit_status> run(enclosure& e, command c) {
    auto started = loop.run(e.exec(std::move(c)));
    if (!started) return started.error();
    return loop.run(e.wait(started->id));
  }
  int code(enclosure& e, command c) {
    const auto status = run(e, std::move(c));
    REQUIRE_MESSAGE(status, status.error().what);
    return status->code();
  }
  std::string output(enclosure& e, command c) {
    pipe_ends p = make_pipe();
    c.descriptors[1] = std::move(p.writer);
    auto started = loop.run(e.exec(std::move(c)));
    REQUIRE_MESSAGE(started, started.error().what);
    std::string text = read_all(p.reader.get());
    CHECK(loop.run(e.wait(started->id)).value().code() == 0);
    return text;
  }
};

}  // namespace

TEST_CASE_FIXTURE(fixture, "a command runs with its arguments, environment, directory and exit code") {
  auto e = start();
  CHECK(code(*e, shell("exit 7")) == 7);
  CHECK(code(*e, shell("kill -9 $$")) == 137);
  command c = shell("printf '%s|' \"$A\" \"$PWD\" \"$0\" \"$@\"");
  c.argv.insert(c.argv.end(), {"zero", "", "two words", "!\"'$"});
  c.env.emplace_back("A", "a value");
  c.cwd = "/usr";
  CHECK(output(*e, std::move(c)) == "a value|/usr|zero||two words|!\"'$|");
}

TEST_CASE_FIXTURE(fixture, "a command has the descriptors it was given, /dev/null, and nothing else") {
  unique_fd leak(::open("/dev/zero", O_RDONLY));  // not even O_CLOEXEC
  auto e = start();
  CHECK(output(*e, shell("exec ls /proc/self/fd")) == "0\n1\n2\n3\n");  // 3: ls reads the directory
  CHECK(output(*e, shell("readlink /proc/self/fd/0 /proc/self/fd/2")) == "/dev/null\n/dev/null\n");
  command c = shell("cat");
  pipe_ends input = make_pipe();
  REQUIRE(::write(input.writer.get(), "hello", 5) == 5);
  input.writer.reset();
  c.descriptors[0] = std::move(input.reader);
  CHECK(output(*e, std::move(c)) == "hello");
}

TEST_CASE_FIXTURE(fixture, "a command that cannot be started says why, and the next one runs") {
  auto e = start();
  auto with = [](auto change) {
    command c = shell("true");
    change(c);
    return c;
  };
  const auto code_of = [&](command c) {
    const auto status = run(*e, std::move(c));
    REQUIRE_FALSE(status);
    CHECK_FALSE(status.error().what.empty());
    return status.error().code;
  };
  CHECK(code_of(with([](command& c) { c.argv = {"no-such-program"}; })) == error_code::not_found);
  CHECK(code_of(with([](command& c) { c.argv = {"/no/such/program"}; })) == error_code::not_found);
  CHECK(code_of(with([](command& c) { c.argv = {"/etc/passwd"}; })) == error_code::permission_denied);
  CHECK(code_of(with([](command& c) { c.argv = {"/usr"}; })) == error_code::permission_denied);
  CHECK(code_of(with([](command& c) { c.argv = {}; })) == error_code::invalid_argument);
  CHECK(code_of(with([](command& c) { c.argv = {""}; })) == error_code::invalid_argument);
  CHECK(code_of(with([](command& c) { c.argv.push_back(std::string("a\0b", 3)); })) ==
        error_code::invalid_argument);
  CHECK(code_of(with([](command& c) { c.cwd = "relative"; })) == error_code::invalid_argument);
  CHECK(code_of(with([](command& c) { c.cwd = ""; })) == error_code::invalid_argument);
  CHECK(code_of(with([](command& c) { c.cwd = "/no/such/directory"; })) == error_code::invalid_argument);
  CHECK(code_of(with([](command& c) { c.cwd = "/etc/passwd"; })) == error_code::invalid_argument);
  CHECK(code_of(with([](command& c) { c.env.emplace_back("A=B", "c"); })) == error_code::invalid_argument);
  CHECK(code_of(with([](command& c) { c.env.emplace_back("", "c"); })) == error_code::invalid_argument);
  CHECK(code_of(with([](command& c) { c.env.emplace_back("A", std::string(1, '\0')); })) ==
        error_code::invalid_argument);
  CHECK(code_of(with([](command& c) { c.pty = window_size{24, 65536}; })) == error_code::invalid_argument);
  // One word over the kernel's limit, and altogether more than a frame takes.
  CHECK(code_of(with([](command& c) { c.argv.emplace_back(200 << 10, 'x'); })) == error_code::too_large);
  CHECK(code_of(with([](command& c) { c.argv.resize(100, std::string(100 << 10, 'x')); })) ==
        error_code::too_large);
  CHECK(run(*e, with([](command& c) { c.argv = {"no-such-program"}; })).error().what ==
        "exec 'no-such-program': No such file or directory (ENOENT)");
  CHECK(code(*e, shell("true")) == 0);
}

TEST_CASE_FIXTURE(fixture, "arguments of a megabyte arrive whole") {
  auto e = start();
  command c = shell("echo ${#1} ${#10} $#");
  c.argv.emplace_back("zero");
  c.argv.resize(14, std::string(100 << 10, 'x'));
  CHECK(output(*e, std::move(c)) == "102400 102400 10\n");
}

TEST_CASE_FIXTURE(fixture, "many commands run at once, each with its own exit code") {
  auto e = start();
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 50; ++i) {
    auto started = loop.run(e->exec(shell("read x; exit " + std::to_string(i))));
    REQUIRE(started);
    ids.push_back(started->id);
  }
  for (std::size_t i = ids.size(); i-- > 0;) {
    CHECK(loop.run(e->wait(ids[i])).value().code() == static_cast<int>(i));
  }
  CHECK(loop.run(e->wait(ids[0])).error().code == error_code::not_found);  // once per command
}

TEST_CASE_FIXTURE(fixture, "a terminal has the size that was asked for, and its master comes back") {
  auto e = start();
  command c = shell("stty size; tty; read line; echo \"got $line\"");
  c.pty = window_size{33, 101};
  auto started = loop.run(e->exec(std::move(c)));
  REQUIRE(started);
  REQUIRE(started->pty_master);
  winsize size{};
  REQUIRE(::ioctl(started->pty_master.get(), TIOCGWINSZ, &size) == 0);
  CHECK(size.ws_row == 33);
  CHECK(size.ws_col == 101);
  REQUIRE(::write(started->pty_master.get(), "words\n", 6) == 6);
  const std::string text = read_all(started->pty_master.get());
  CHECK(text.find("33 101\r\n") != std::string::npos);
  CHECK(text.find("got words\r\n") != std::string::npos);
  CHECK(loop.run(e->wait(started->id)).value().code() == 0);
}

TEST_CASE_FIXTURE(fixture, "a signal reaches the command's process group") {
  auto e = start();
  pipe_ends p = make_pipe();
  command c = shell("sleep 100 & trap 'echo caught; wait; exit 3' TERM; echo set; wait");
  c.descriptors[1] = std::move(p.writer);
  auto started = loop.run(e->exec(std::move(c)));
  REQUIRE(started);
  char set[4];
  REQUIRE(::read(p.reader.get(), set, 4) == 4);
  REQUIRE(loop.run(e->signal(started->id, SIGTERM)));
  CHECK(read_all(p.reader.get()) == "caught\n");  // ends only because sleep got it too
  CHECK(loop.run(e->wait(started->id)).value().code() == 3);
  CHECK(loop.run(e->signal(started->id, SIGTERM)).error().code == error_code::not_found);
  CHECK(loop.run(e->signal(started->id, 0)).error().code == error_code::invalid_argument);
  CHECK(loop.run(e->signal(started->id, 65)).error().code == error_code::invalid_argument);
}

TEST_CASE_FIXTURE(fixture, "shutdown warns with TERM, kills after the grace, and can be asked for again") {
  auto e = start();
  pipe_ends p = make_pipe();
  command kind = shell("trap 'echo bye; exit 0' TERM; echo set; while :; do sleep 100 & wait; done");
  command stubborn = shell("trap '' TERM; echo set; while :; do sleep 100; done");
  kind.descriptors[1].reset(::fcntl(p.writer.get(), F_DUPFD_CLOEXEC, 0));
  stubborn.descriptors[1] = std::move(p.writer);
  auto first = loop.run(e->exec(std::move(kind)));
  auto second = loop.run(e->exec(std::move(stubborn)));
  REQUIRE(first);
  REQUIRE(second);
  char set[8];
  REQUIRE(::read(p.reader.get(), set, 4) == 4);
  REQUIRE(::read(p.reader.get(), set, 4) == 4);
  const auto tree = test::open_process_tree(e->launcher_pid());
  auto patient = loop.begin(e->shutdown(60000));
  loop.settle();
  REQUIRE(::read(p.reader.get(), set, 4) == 4);
  CHECK(std::string(set, 4) == "bye\n");
  loop.run(e->shutdown(100));
  loop.finish(patient);
  CHECK_FALSE(e->alive());
  CHECK(read_all(p.reader.get()).empty());
  CHECK(loop.run(e->wait(first->id)).value().code() == 0);
  for (const unique_fd& process : tree)
    CHECK(test::wait_until_ended(process.get()));
  CHECK(loop.run(e->exec(shell("true"))).error().code == error_code::unavailable);
  CHECK(loop.run(e->signal(second->id, SIGTERM)).error().code == error_code::unavailable);
  loop.run(e->shutdown(0));
}

TEST_CASE_FIXTURE(fixture, "if the launcher is killed, everything that waits is told, and why") {
  auto e = start();
  auto started = loop.run(e->exec(shell("sleep 100")));
  REQUIRE(started);
  auto waiting = loop.begin(e->wait(started->id));
  auto ended = loop.begin(e->ended());
  ::kill(e->launcher_pid(), SIGKILL);
  const auto status = loop.finish(waiting);
  REQUIRE_FALSE(status);
  CHECK(status.error().code == error_code::unavailable);
  CHECK(status.error().what == "the enclosure has ended: the launcher was killed by signal 9");
  loop.finish(ended);
  CHECK_FALSE(e->alive());
  CHECK(e->why_ended() == "the launcher was killed by signal 9");
  CHECK(loop.run(e->exec(shell("true"))).error().code == error_code::unavailable);
}

TEST_CASE_FIXTURE(fixture, "destroying an enclosure ends everything in it at once, daemons too") {
  const auto before = test::take_footprint();
  std::vector<unique_fd> tree;
  {
    test::event_loop own;
    auto e = own.run(enclosure::start(own.strand(), test::unconfined_plan(), init_path(), limit_group()));
    REQUIRE(e);
    pipe_ends p = make_pipe();
    command c = shell("(setsid sleep 100 & setsid sleep 100 & echo; sleep 100) & wait");
    c.descriptors[1] = std::move(p.writer);
    REQUIRE(own.run((*e)->exec(std::move(c))));
    char newline;
    REQUIRE(::read(p.reader.get(), &newline, 1) == 1);
    tree = test::open_process_tree((*e)->launcher_pid());
    REQUIRE(tree.size() >= 3);
  }
  for (const unique_fd& process : tree)
    CHECK(test::wait_until_ended(process.get()));
  tree.clear();
  CHECK(test::take_footprint() == before);
}

TEST_CASE_FIXTURE(fixture, "an enclosure can be killed from another thread") {
  auto e = start();
  auto started = loop.run(e->exec(shell("sleep 100")));
  REQUIRE(started);
  const auto tree = test::open_process_tree(e->launcher_pid());
  std::thread([&] { e->kill(5000); }).join();
  for (const unique_fd& process : tree)
    CHECK(test::wait_until_ended(process.get()));
  CHECK_FALSE(loop.run(e->wait(started->id)));
}

TEST_CASE_FIXTURE(fixture, "a start that fails carries what the launcher wrote, escaped and cut at 4 KiB") {
  const auto before = test::take_footprint();
  const auto e = try_start(test::shell_plan("printf 'no such \\033[1mthing\\n' >&2; exit 3"));
  REQUIRE_FALSE(e);
  CHECK(e.error().code == error_code::failed);
  CHECK(e.error().what ==
        "the enclosure of shell did not start: the launcher ended with code 3; it wrote 'no such "
        "\\x1b[1mthing'");
  const auto loud = try_start(test::shell_plan("yes | head -c 100000 >&2; exit 1"));
  REQUIRE_FALSE(loud);
  CHECK(loud.error().what.size() > 4096);
  CHECK(loud.error().what.size() < 12500);  // "\n" takes two
  const auto missing = try_start([] {
    plan p = test::shell_plan("");
    p.argv[0] = "/no/such/launcher";
    return p;
  }());
  CHECK(missing.error().what == "exec '/no/such/launcher': No such file or directory (ENOENT)");
  CHECK(test::take_footprint() == before);
}

TEST_CASE_FIXTURE(fixture, "an init that does not answer in time is an error, and is gone") {
  const auto before = test::take_footprint();
  const auto e = try_start(test::misbehaving_plan("silent"), 200);
  REQUIRE_FALSE(e);
  CHECK(e.error().code == error_code::timeout);
  CHECK(e.error().what == "the enclosure of misbehaving did not start: no answer within 200 ms");
  CHECK(test::take_footprint() == before);
}

TEST_CASE_FIXTURE(fixture, "an init that breaks the protocol in the handshake is refused, and is gone") {
  const auto before = test::take_footprint();
  for (const std::string how : {"garbage", "other-version", "half-a-frame", "too-long", "kernel-frame",
                                "descriptors-with-ready", "unmentioned-descriptors", "missing-descriptors",
                                "many-descriptors", "ready-without-payload", "exec-before-ready"}) {
    CAPTURE(how);
    const auto e = try_start(test::misbehaving_plan(how));
    REQUIRE_FALSE(e);
    CHECK(e.error().code == error_code::failed);
    CHECK(e.error().what.starts_with("the enclosure of misbehaving did not start: "));
    if (how == "other-version") CHECK(e.error().what.find("version") != std::string::npos);
    CHECK(test::take_footprint() == before);
  }
}

TEST_CASE_FIXTURE(fixture, "an init that breaks the protocol later loses its enclosure") {
  const auto before = test::take_footprint();
  for (const std::string how :
       {"exec-dies", "exec-unknown-id", "exec-exited-first", "exec-started-twice", "exec-exited-twice",
        "exec-ready-again", "exec-two-terminals", "exec-no-terminal", "exec-then-dies"}) {
    CAPTURE(how);
    {
      auto e = start(test::misbehaving_plan(how));
      command c = shell("true");
      c.pty = window_size{};
      if (how != "exec-no-terminal") c.pty.reset();
      const auto started = loop.run(e->exec(std::move(c)));
      if (!started) CHECK(started.error().code != error_code::not_found);
      loop.run(e->ended());
      CHECK_FALSE(e->alive());
      CHECK_FALSE(e->why_ended().empty());
      if (started) {
        // Its end was told only if it was told properly.
        CHECK(loop.run(e->wait(started->id)).has_value() == (how == "exec-exited-twice"));
      }
    }
    loop.settle();
    CHECK(test::take_footprint() == before);
  }
}

TEST_CASE_FIXTURE(fixture, "frames may arrive in pieces") {
  auto e = start(test::misbehaving_plan("exec-byte-by-byte"));
  CHECK(code(*e, shell("true")) == 0);
}

TEST_CASE_FIXTURE(fixture, "an init that ignores shutdown is killed") {
  auto e = start(test::misbehaving_plan("exec-ignores-shutdown"));
  auto exec = loop.begin(e->exec(shell("true")));
  loop.settle();
  loop.run(e->shutdown(0));
  CHECK_FALSE(e->alive());
  CHECK(loop.finish(exec).error().code == error_code::unavailable);
}

TEST_CASE_FIXTURE(fixture, "a plan's files and paths are there under their numbers") {
  test::temporary_directory dir;
  dir.write("file", "");
  plan p = test::shell_plan("cat <&5 >&2; readlink /proc/self/fd/6 >&2; cat <&7 >&2; exit 1");
  p.files = {{5, "first", "bytes of the first\n"}, {7, "third", "and the third"}};
  p.paths = {{6, dir / "file"}};
  CHECK(try_start(p).error().what ==
        "the enclosure of shell did not start: the launcher ended with code 1; it wrote 'bytes of the "
        "first\\n" +
            (dir / "file") + "\\nand the third'");
}

TEST_CASE_FIXTURE(fixture,
                  "a plan's path with a symbolic link in it, or nothing there, fails the start by name") {
  test::temporary_directory dir;
  dir.write("real/file", "");
  std::filesystem::create_symlink("real", dir / "link");
  std::filesystem::create_symlink("file", dir / "real/last");
  const auto before = test::take_footprint();
  for (const char* name : {"link/file", "real/last", "missing"}) {
    plan p = test::shell_plan("exit 0");
    p.paths = {{5, dir / name}};
    const auto e = try_start(p);
    REQUIRE_FALSE(e);
    CHECK(e.error().what.find("'" + (dir / name) + "'") != std::string::npos);
  }
  CHECK(test::take_footprint() == before);
}

TEST_CASE_FIXTURE(fixture, "a plan may have more paths than the soft limit of open files") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit low = before;
  low.rlim_cur = 256;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
  test::temporary_directory dir;
  plan p = test::shell_plan("ls /proc/self/fd | wc -l >&2; readlink /proc/self/fd/1004 >&2; exit 1");
  for (int i = 0; i < 1000; ++i)
    p.paths.push_back({5 + i, dir.write(std::to_string(i), "")});
  const auto e = try_start(p);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  // 0 to 1004, and the one that ls reads.
  CHECK(e.error().what.find("'1006\\n" + (dir / "999") + "'") != std::string::npos);
}

TEST_CASE_FIXTURE(fixture, "rlimits of the limits bind every command") {
  resource_limits l;
  l.file_size_bytes = 1 << 20;
  auto limits = limit_group::create(l, "s", {init_path(), false});
  REQUIRE(limits);
  auto e =
      loop.run(enclosure::start(loop.strand(), test::unconfined_plan(), init_path(), std::move(*limits)));
  REQUIRE(e);
  CHECK(output(**e, shell("ulimit -f")) == "2048\n");
}

TEST_CASE_FIXTURE(fixture, "whichever call fails, a start is an error and leaves nothing behind") {
  test::temporary_directory dir;
  plan p = test::unconfined_plan();
  p.files = {{5, "file", "bytes"}};
  p.paths = {{6, dir.path()}};
  int calls = 0;
  {
    test::failing_call count(0);
    auto e = try_start(p);
    REQUIRE(e);
    calls = count.calls();
  }
  loop.settle();
  const auto before = test::take_footprint();
  for (int n = 1; n <= calls; ++n) {
    CAPTURE(n);
    {
      test::failing_call fail(n);
      CHECK_FALSE(try_start(p));
      CHECK(fail.reached());
    }
    loop.settle();
    CHECK(test::take_footprint() == before);
  }
}

TEST_CASE_FIXTURE(fixture, "a hundred enclosures come and go without a trace") {
  { auto warm_up = start(); }
  loop.settle();
  const auto before = test::take_footprint();
  for (int i = 0; i < 100; ++i) {
    auto e = start();
    if (i % 2 == 0) CHECK(code(*e, shell("exit 1")) == 1);
    if (i % 3 == 0) loop.run(e->shutdown(0));
  }
  loop.settle();
  CHECK(test::take_footprint() == before);
}
