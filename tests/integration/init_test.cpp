#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/init_process.hpp"
#include "support/temporary_directory.hpp"

using namespace ccbox;
using namespace ccbox::init;
using ccbox::test::eventually;
using ccbox::test::init_process;
using ccbox::test::init_setting;

namespace {

void check_fails(init_process& init, const exec_message& message, exec_stage stage, int error_number) {
  const auto outcome = init.run(message);
  REQUIRE(outcome.failed.has_value());
  CHECK(outcome.failed->stage == stage);
  CHECK(outcome.failed->error_number == static_cast<std::uint32_t>(error_number));
}

// A file of this mode in `directory`; its path.
std::string write_file(const test::temporary_directory& directory, const std::string& name,
                       const std::string& text, mode_t mode) {
  const auto path = directory.write(name, text);
  chmod(path.c_str(), mode);
  return path;
}

std::chrono::nanoseconds cpu_time(pid_t pid) {
  clockid_t clock;
  timespec spent{};
  REQUIRE(clock_getcpuclockid(pid, &clock) == 0);
  REQUIRE(clock_gettime(clock, &spent) == 0);
  return std::chrono::seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
}

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

TEST_CASE("init is process 1 of an enclosure, and not outside of one") {
  init_process enclosed(init_setting::enclosed), unconfined(init_setting::unconfined);
  CHECK(enclosed.pid_inside() == 1);
  CHECK(unconfined.pid_inside() == static_cast<std::uint32_t>(unconfined.pid()));
}

TEST_CASE("a command gets its words, environment, directory and standard input exactly") {
  for (const auto setting : {init_setting::enclosed, init_setting::unconfined}) {
    init_process init(setting);
    auto message = init_process::shell("cat; for w; do printf '[%s]' \"$w\"; done; pwd; env | sort");
    message.argv.insert(message.argv.end(), {"sh", "", "a b", "!'\"$x", "\n"});
    message.env.push_back("X=1=2");
    message.cwd = "/usr";
    const auto outcome = init.run(message, "input\n");
    CHECK(outcome.output ==
          "input\n[][a b][!'\"$x][\n]/usr\nPATH=/usr/bin:/bin:/usr/sbin:/sbin\nPWD=/usr\nX=1=2\n");
    CHECK(outcome.code() == 0);
  }
}

TEST_CASE("exit codes and signals come back as what they are") {
  init_process init(init_setting::enclosed);
  const auto exited = init.run(init_process::shell("exit 7"));
  CHECK_FALSE(exited.exit.signalled);
  CHECK(exited.exit.value == 7);
  const auto killed = init.run(init_process::shell("kill -ABRT $$"));
  CHECK(killed.exit.signalled);
  CHECK(killed.exit.value == SIGABRT);
}

TEST_CASE("what cannot be executed says why") {
  init_process init(init_setting::enclosed);
  const test::temporary_directory directory;
  const auto plain = write_file(directory, "plain", "echo hi\n", 0644);
  const auto broken = write_file(directory, "broken", "#!/nowhere/interpreter\n", 0755);
  const auto binary = write_file(directory, "binary",
                                 std::string("\x7f"
                                             "ELF\0\0\0\0junk",
                                             12),
                                 0755);
  const auto run = [](const std::string& program) { return init_process::command({program}); };
  check_fails(init, run("no-such-program"), exec_stage::exec, ENOENT);
  check_fails(init, run("/nowhere/program"), exec_stage::exec, ENOENT);
  check_fails(init, run(""), exec_stage::exec, ENOENT);
  check_fails(init, run(plain), exec_stage::exec, EACCES);
  check_fails(init, run("/usr"), exec_stage::exec, EACCES);
  check_fails(init, run(broken), exec_stage::exec, ENOENT);
  check_fails(init, run(binary), exec_stage::exec, ENOEXEC);
  check_fails(init, run("/etc/passwd/x"), exec_stage::exec, ENOTDIR);
}

TEST_CASE("the program is searched in the PATH of its own environment, as a shell would") {
  init_process init(init_setting::enclosed);
  const test::temporary_directory directory;
  write_file(directory, "first/tool", "#!/bin/sh\necho first\n", 0644);
  write_file(directory, "second/tool", "#!/bin/sh\necho second $0\n", 0755);
  auto message = init_process::command({"tool"});
  const auto first = directory / "first", second = directory / "second";
  message.env = {"PATH=/nowhere:" + first + ":" + second};
  CHECK(init.run(message).output == "second " + second + "/tool\n");
  message.env = {"PATH=" + first + ":/nowhere"};
  check_fails(init, message, exec_stage::exec, EACCES);  // found, though not executable
  message.env = {"PATH=" + second + ":"};
  message.argv = {"first-time"};
  check_fails(init, message, exec_stage::exec, ENOENT);
  message.cwd = second;
  message.argv = {"tool"};
  message.env = {"PATH=/nowhere:"};  // an empty element is the current directory
  CHECK(init.run(message).output == "second tool\n");
  message.argv = {"./tool"};
  CHECK(init.run(message).output == "second ./tool\n");
  message.argv = {"true"};
  message.env = {"A=1"};  // no PATH at all
  CHECK(init.run(message).code() == 0);
}

TEST_CASE("a script without an interpreter line is run by sh with its arguments") {
  init_process init(init_setting::enclosed);
  const test::temporary_directory directory;
  const auto script = write_file(directory, "script", "echo $0 \"$1\" $#\n", 0755);
  CHECK(init.run(init_process::command({script, "a  b", "c"})).output == script + " a  b 2\n");
}

TEST_CASE("argument lists: the largest that the system takes run, larger ones are refused, init stays well") {
  init_process init(init_setting::enclosed);
  constexpr std::size_t max_word = 128 * 1024 - 1;  // MAX_ARG_STRLEN without its NUL
  auto message = init_process::shell("echo ${#1}");
  message.argv.insert(message.argv.end(), {"sh", std::string(max_word, 'x')});
  CHECK(init.run(message).output == std::to_string(max_word) + "\n");
  message.argv.back() += 'x';
  check_fails(init, message, exec_stage::exec, E2BIG);

  message = init_process::command({"true"});
  for (int i = 0; i < 64; ++i)
    message.argv.push_back(std::string(100000, 'x'));  // 6.4 MB
  check_fails(init, message, exec_stage::exec, E2BIG);

  message = init_process::command({"true"});
  for (int i = 0; i < 64; ++i)
    message.env.push_back("V" + std::to_string(i) + "=" + std::string(100000, 'x'));
  check_fails(init, message, exec_stage::exec, E2BIG);

  message = init_process::command({"true"});
  for (int i = 0; i < 50000; ++i)
    message.argv.push_back("word");
  CHECK(init.run(message).code() == 0);
}

TEST_CASE("a directory that is missing, a file or closed to the caller is refused by name of the step") {
  init_process init(init_setting::enclosed);
  auto message = init_process::command({"true"});
  message.cwd = "/nowhere";
  check_fails(init, message, exec_stage::chdir, ENOENT);
  message.cwd = "/etc/passwd";
  check_fails(init, message, exec_stage::chdir, ENOTDIR);
  message.cwd = "/" + std::string(5000, 'x');
  check_fails(init, message, exec_stage::chdir, ENAMETOOLONG);
  message.cwd = "/proc/self/fd/7";
  check_fails(init, message, exec_stage::chdir, ENOENT);
}

TEST_CASE("a deleted directory is refused") {
  init_process init(init_setting::enclosed);
  const test::temporary_directory directory;
  const auto gone = directory / "gone";
  std::filesystem::create_directory(gone);
  auto holder = init_process::command({"sleep", "60"});
  holder.cwd = gone;
  const auto id = init.exec(holder);
  const auto pid = decode_number(init.wait_for(frame_type::started, id).payload).value();
  auto message = init_process::command({"true"});
  message.cwd = "/proc/" + std::to_string(pid) + "/cwd";
  CHECK(init.run(message).code() == 0);
  std::filesystem::remove(gone);
  check_fails(init, message, exec_stage::chdir, ENOENT);
}

TEST_CASE("standard descriptors that are not sent are the null device") {
  init_process init(init_setting::enclosed);
  const unique_fd out(memfd_create("out", MFD_CLOEXEC));
  auto message = init_process::shell("exec readlink /proc/self/fd/0 /proc/self/fd/2");
  message.flags = exec_stdout;
  const auto id = init.exec(message, {out.get()});
  CHECK(init.wait_exit(id).value == 0);
  char text[64] = {};
  CHECK(pread(out.get(), text, sizeof text - 1, 0) > 0);
  CHECK(std::string(text) == "/dev/null\n/dev/null\n");
}

TEST_CASE("a command has its three descriptors and no other") {
  for (const auto setting : {init_setting::enclosed, init_setting::unconfined}) {
    init_process init(setting);
    // The fourth is the listing's own.
    CHECK(init.run(init_process::command({"ls", "/proc/self/fd"})).output == "0\n1\n2\n3\n");
  }
}

TEST_CASE("a command starts with default signal dispositions, an empty mask and a session of its own") {
  test::init_process::options ignoring;
  ignoring.before_exec = [] {
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
  };
  init_process init(init_setting::enclosed, ignoring);
  const auto outcome = init.run(init_process::shell(
      "grep -E 'Sig(Blk|Ign)' /proc/self/status; cut -d' ' -f5,6 /proc/$$/stat; echo $$"));
  const auto pid = std::to_string(outcome.pid_inside);
  CHECK(outcome.output ==
        "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n" + pid + " " + pid + "\n" + pid + "\n");
}

TEST_CASE("limits hold in the command and its children, and a stricter one stays") {
  init_process init(init_setting::enclosed);
  auto message = init_process::shell("ulimit -Sn; ulimit -Hn; sh -c 'ulimit -n'");
  message.limits = {{RLIMIT_NOFILE, 33}};
  CHECK(init.run(message).output == "33\n33\n33\n");
  rlimit own;
  getrlimit(RLIMIT_NOFILE, &own);
  message.limits = {{RLIMIT_NOFILE, 44}, {RLIMIT_NOFILE, 1000}};
  CHECK(init.run(message).output == "44\n44\n44\n");
  message.limits = {{99, 1}};
  check_fails(init, message, exec_stage::limits, EINVAL);
  CHECK(init.run(init_process::shell("ulimit -Hn")).output == std::to_string(own.rlim_max) + "\n");
}

TEST_CASE("a file size limit ends the command with its signal") {
  init_process init(init_setting::enclosed);
  auto message = init_process::shell("exec head -c 100000 /dev/zero");
  message.limits = {{RLIMIT_FSIZE, 1000}};
  const auto outcome = init.run(message);
  CHECK(outcome.exit.signalled);
  CHECK(outcome.exit.value == SIGXFSZ);
}

TEST_CASE("a signal reaches the whole process group") {
  init_process init(init_setting::enclosed);
  const unique_fd out(memfd_create("out", MFD_CLOEXEC));
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const unique_fd ready(ends[0]);
  unique_fd theirs(ends[1]);
  auto message = init_process::shell(
      "(trap 'echo child >&2; exit' TERM; echo; while :; do sleep 0.05; done) & "
      "trap 'wait; exit 9' TERM; while :; do wait; done");
  message.flags = exec_stdout | exec_stderr;
  const auto id = init.exec(message, {theirs.get(), out.get()});
  theirs.reset();
  char byte;
  REQUIRE(read(ready.get(), &byte, 1) == 1);
  init.signal(id, SIGTERM);
  const auto exited = init.wait_exit(id);
  CHECK_FALSE(exited.signalled);
  CHECK(exited.value == 9);
  char text[256] = {};  // the shells may add that their sleep was terminated
  CHECK(pread(out.get(), text, sizeof text - 1, 0) > 0);
  CHECK(std::string(text).find("child\n") != std::string::npos);
}

TEST_CASE(
    "a signal that is sent together with the exec is not lost, one that comes after the end is ignored") {
  init_process init(init_setting::enclosed);
  for (int i = 0; i < 50; ++i) {
    const auto id = init.exec(init_process::command({"sleep", "60"}));
    init.signal(id, SIGKILL);
    const auto exited = init.wait_exit(id);
    CHECK(exited.signalled);
    CHECK(exited.value == SIGKILL);
    init.signal(id, SIGKILL);
  }
  CHECK(init.run(init_process::command({"true"})).code() == 0);
}

TEST_CASE("started precedes exited, and each comes exactly once, for a hundred commands at a time") {
  init_process init(init_setting::enclosed);
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 100; ++i)
    ids.push_back(init.exec(init_process::command({i % 3 == 0 ? "nowhere" : "true"})));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto first = init.wait_for(frame_type::started, ids[i]);
    if (i % 3 == 0) {
      CHECK(first.header.type == frame_type::failed);
      continue;
    }
    CHECK(first.header.type == frame_type::started);
    CHECK(init.wait_exit(ids[i]).value == 0);
  }
  for (const auto id : ids)
    for (const auto type : {frame_type::started, frame_type::exited, frame_type::failed})
      CHECK_FALSE(init.has_frame(type, id));
}

TEST_CASE("a thousand orphans are reaped while commands go on") {
  for (const auto setting : {init_setting::enclosed, init_setting::unconfined}) {
    init_process init(setting);
    CHECK(init.run(init_process::shell("i=0; while [ $i -lt 1000 ]; do (true &); i=$((i+1)); done")).code() ==
          0);
    CHECK(init.run(init_process::command({"true"})).code() == 0);
    const auto children =
        "/proc/" + std::to_string(init.pid()) + "/task/" + std::to_string(init.pid()) + "/children";
    CHECK(eventually([&] {
      std::string left;
      std::getline(std::ifstream(children), left);
      return left.empty();
    }));
  }
}

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

TEST_CASE("more descriptors than init may hold are a failure of that command alone") {
  test::init_process::options narrow;
  narrow.before_exec = [] {
    const rlimit few{7, 7};
    setrlimit(RLIMIT_NOFILE, &few);
  };
  init_process init(init_setting::unconfined, narrow);
  auto message = init_process::command({"true"});
  message.flags = exec_stdin | exec_stdout | exec_stderr;
  const unique_fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  const auto id = init.exec(message, {null.get(), null.get(), null.get()});
  const auto answer = init.wait_for(frame_type::started, id);
  REQUIRE(answer.header.type == frame_type::failed);
  CHECK(decode_failed(answer.payload)->stage == exec_stage::descriptors);
  CHECK(decode_failed(answer.payload)->error_number == EMFILE);
  message.flags = 0;
  CHECK(init.wait_for(frame_type::failed, init.exec(message)).header.type == frame_type::failed);
}

TEST_CASE("shutdown: TERM first, what ends in time ends by itself, and init leaves with 0") {
  for (const auto setting : {init_setting::enclosed, init_setting::unconfined}) {
    init_process init(setting);
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    const unique_fd ready(ends[0]);
    unique_fd theirs(ends[1]);
    auto message = init_process::shell("trap 'exit 4' TERM; echo; while :; do sleep 0.05; done");
    message.flags = exec_stdout;
    const auto id = init.exec(message, {theirs.get()});
    theirs.reset();
    char byte;
    REQUIRE(read(ready.get(), &byte, 1) == 1);
    init.shutdown(60000);
    const auto exited = init.wait_exit(id);
    CHECK_FALSE(exited.signalled);
    CHECK(exited.value == 4);
    const int status = init.wait_end();
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
}

TEST_CASE("shutdown: what ignores TERM, stopped or in another session, is killed and reported") {
  for (const auto setting : {init_setting::enclosed, init_setting::unconfined}) {
    init_process init(setting);
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    const unique_fd alive(ends[0]);
    unique_fd theirs(ends[1]);
    auto message = init_process::shell(
        "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo a; while :; do sleep 1; done' & "
        "(setsid sh -c 'echo b; kill -STOP $$; sleep 100' &) ; wait");
    message.flags = exec_stdout;
    const auto id = init.exec(message, {theirs.get()});
    theirs.reset();
    char bytes[4];
    std::size_t got = 0;
    while (got < 4) {
      const ssize_t count = read(alive.get(), bytes + got, 4 - got);
      REQUIRE(count > 0);
      got += static_cast<std::size_t>(count);
    }
    init.shutdown(50);
    const auto exited = init.wait_exit(id);
    CHECK(exited.signalled);
    CHECK(exited.value == SIGKILL);
    CHECK(WEXITSTATUS(init.wait_end()) == 0);
    CHECK(read(alive.get(), bytes, 1) == 0);  // nobody holds the other end any more
  }
}

TEST_CASE("shutdown: a stopped command hears TERM, and ends by it") {
  for (const auto setting : {init_setting::enclosed, init_setting::unconfined}) {
    init_process init(setting);
    const auto id = init.exec(init_process::shell("kill -STOP $$; exit 1"));
    const auto pid = decode_number(init.wait_for(frame_type::started, id).payload).value();
    const auto stopped = "grep -q '^State:.*T' /proc/" + std::to_string(pid) + "/status";
    REQUIRE(eventually([&] { return init.run(init_process::shell(stopped)).code() == 0; }));
    init.shutdown(60000);
    const auto exited = init.wait_exit(id);
    CHECK(exited.signalled);
    CHECK(exited.value == SIGTERM);
  }
}

TEST_CASE("an exec during shutdown is refused") {
  init_process init(init_setting::enclosed);
  const auto id = init.exec(init_process::shell("trap '' TERM; while :; do sleep 1; done"));
  init.wait_for(frame_type::started, id);
  init.shutdown(60000);
  const auto late = init.wait_for(frame_type::started, init.exec(init_process::command({"true"})));
  REQUIRE(late.header.type == frame_type::failed);
  CHECK(decode_failed(late.payload)->error_number == ECANCELED);
  init.shutdown(0);  // a shorter grace wins
  CHECK(WEXITSTATUS(init.wait_end()) == 0);
}

TEST_CASE("an idle init ends at once on shutdown") {
  init_process init(init_setting::enclosed);
  CHECK(init.run(init_process::command({"true"})).code() == 0);
  init.shutdown(60000);
  CHECK(WEXITSTATUS(init.wait_end()) == 0);
}

TEST_CASE("a kernel side that stops reading costs nothing but its own answers") {
  init_process init(init_setting::unconfined);
  // Small buffers fill after some hundred answers; init must then neither block nor grow nor spin.
  const int size = 1;
  REQUIRE(setsockopt(init.channel(), SOL_SOCKET, SO_SNDBUF, &size, sizeof size) == 0);
  std::vector<std::uint64_t> ids;
  bool stopped = false;
  std::chrono::nanoseconds spent{};
  while (!stopped && ids.size() < 10000) {
    const auto before = cpu_time(init.pid());
    pollfd writable{init.channel(), POLLOUT, 0};
    stopped = poll(&writable, 1, 1000) == 0;
    spent = cpu_time(init.pid()) - before;
    if (!stopped) ids.push_back(init.exec(init_process::command({"nowhere"})));
  }
  CHECK(stopped);                                 // it takes no further requests
  CHECK(spent < std::chrono::milliseconds(500));  // and waits, for a second here
  for (const auto id : ids)
    CHECK(init.wait_for(frame_type::failed, id).header.type == frame_type::failed);
  CHECK(init.run(init_process::command({"true"})).code() == 0);
}

TEST_CASE("a frame that makes no sense ends init") {
  const auto exec_bytes = encode(init_process::command({"true"}));
  const auto header = [](std::uint32_t size, frame_type type, std::uint16_t fds = 0) {
    return encode_header({size, type, fds, 1});
  };
  const auto frame = [&](frame_type type, const std::string& payload) {
    return header(static_cast<std::uint32_t>(payload.size()), type) + payload;
  };
  auto with_stdin = init_process::command({"true"});
  with_stdin.flags = exec_stdin;
  const std::vector<std::string> nonsense{
      std::string(16, '\xff'),
      header(max_payload_bytes + 1, frame_type::exec),
      frame(static_cast<frame_type>(9), ""),
      frame(frame_type::setup, encode(setup_message{"", setup_unconfined})),  // twice
      frame(frame_type::ready, encode(ready_message{1, 1})),
      frame(frame_type::exec, exec_bytes.substr(0, exec_bytes.size() - 1)),
      frame(frame_type::exec, exec_bytes + "x"),
      frame(frame_type::exec, encode(with_stdin)),  // announces a descriptor that is not there
      frame(frame_type::signal, encode_number(0)),
      frame(frame_type::signal, encode_number(65)),
      frame(frame_type::signal, encode_number(0xffffffff)),
      frame(frame_type::shutdown, ""),
      header(0, frame_type::shutdown, 3),
  };
  for (std::size_t i = 0; i < nonsense.size(); ++i) {
    CAPTURE(i);
    init_process init(init_setting::unconfined);
    init.send_bytes(nonsense[i]);
    const int status = init.wait_end();
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 1);
  }
}

TEST_CASE("a second exec with the id of a living command ends init") {
  init_process init(init_setting::unconfined);
  const auto message = encode(init_process::command({"sleep", "60"}));
  init.send(frame_type::exec, 5, message);
  init.wait_for(frame_type::started, 5);
  init.send(frame_type::exec, 5, message);
  CHECK(WEXITSTATUS(init.wait_end()) == 1);
}

TEST_CASE("descriptors that were not announced end init") {
  init_process init(init_setting::unconfined);
  const unique_fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  const auto payload = encode(init_process::command({"true"}));
  init.send_bytes(
      encode_header({static_cast<std::uint32_t>(payload.size()), frame_type::exec, 0, 1}) + payload,
      {null.get()});
  CHECK(WEXITSTATUS(init.wait_end()) == 1);
}

TEST_CASE("a frame that arrives byte by byte is the same frame") {
  init_process init(init_setting::enclosed);
  const auto payload = encode(init_process::command({"true"}));
  const auto bytes =
      encode_header({static_cast<std::uint32_t>(payload.size()), frame_type::exec, 0, 77}) + payload;
  for (const char byte : bytes)
    init.send_bytes(std::string(1, byte));
  CHECK(init.wait_exit(77).value == 0);
}

TEST_CASE("before the setup: a wrong command line, channel or first frame says so and starts nothing") {
  test::init_process::options silent;
  silent.complete_setup = false;
  const auto fails = [](init_process& init, const std::string& text) {
    CHECK(WEXITSTATUS(init.wait_end()) == 1);
    CHECK(init.error_output().find(text) != std::string::npos);
  };
  const std::string program = CCBOX_TEST_BINARY_DIR "/bin/ccbox-init";
  for (const std::vector<std::string>& argv : std::vector<std::vector<std::string>>{
           {program}, {program, "--channel"}, {program, "--channel", "3", "x"}, {program, "--other", "3"}}) {
    silent.argv = argv;
    init_process init(init_setting::unconfined, silent);
    fails(init, "usage: ccbox-init --channel N");
  }
  for (const char* number : {"2", "-1", "3x", "", "99999999999999999999"}) {
    silent.argv = {program, "--channel", number};
    init_process init(init_setting::unconfined, silent);
    fails(init, "not a descriptor above 2");
  }
  silent.argv = {program, "--channel", "57"};
  {
    init_process init(init_setting::unconfined, silent);
    fails(init, "the channel");
  }
  silent.argv = {program, "--channel", "5"};
  silent.before_exec = [] { dup2(open("/dev/null", O_RDWR), 5); };
  {
    init_process init(init_setting::unconfined, silent);
    fails(init, "the channel is not a Unix stream socket");
  }
  silent.argv = {};
  silent.before_exec = nullptr;
  {
    init_process init(init_setting::unconfined, silent);
    init.send(frame_type::exec, 1, encode(init_process::command({"true"})));
    fails(init, "the first frame is not a valid setup");
  }
  {
    init_process init(init_setting::unconfined, silent);
    init.close_channel();
    fails(init, "the channel ended before the setup");
  }
}

TEST_CASE("an enclosure is not called ready without its filter, nor where init is not process 1") {
  test::init_process::options silent;
  silent.complete_setup = false;
  {
    init_process init(init_setting::enclosed, silent);
    init.send(frame_type::setup, 0, encode(setup_message{}));
    CHECK(WEXITSTATUS(init.wait_end()) == 1);
    CHECK(init.error_output().find("no system-call filter was sent") != std::string::npos);
  }
  {
    init_process init(init_setting::enclosed, silent);
    init.send(frame_type::setup, 0, encode(setup_message{std::string(16, '\xff'), 0}));
    CHECK(WEXITSTATUS(init.wait_end()) == 1);
    CHECK(init.error_output().find("install the system-call filter") != std::string::npos);
  }
  {
    init_process init(init_setting::unconfined, silent);
    init.send(frame_type::setup, 0, encode(setup_message{std::string("\x06\0\0\0\0\0\xff\x7f", 8), 0}));
    CHECK(WEXITSTATUS(init.wait_end()) == 1);
    CHECK(init.error_output().find("not the first process") != std::string::npos);
  }
}

TEST_CASE("a launcher that closed its standard descriptors does no harm") {
  test::init_process::options closed;
  closed.before_exec = [] {
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
  };
  init_process init(init_setting::enclosed, closed);
  CHECK(init.run(init_process::shell("cat; echo out")).output == "out\n");
}
