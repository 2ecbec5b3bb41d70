#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
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
  const auto closed = directory / "closed";
  write_file(directory, "closed/other", "", 0644);
  REQUIRE(::chmod(closed.c_str(), 0) == 0);  // root may search it all the same, and finds nothing
  message.env = {"PATH=" + closed + ":/nowhere"};
  check_fails(init, message, exec_stage::exec, ENOENT);
  message.env = {"PATH=" + closed + ":" + second};
  CHECK(init.run(message).output == "second " + second + "/tool\n");
  REQUIRE(::chmod(closed.c_str(), 0700) == 0);
  write_file(directory, "third/tool/file", "", 0644);
  message.env = {"PATH=" + directory / "third"};  // a directory is no program
  check_fails(init, message, exec_stage::exec, ENOENT);
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
      "trap 'wait; exit 9' TERM; (trap 'echo child >&2; exit' TERM; echo; while :; do sleep 0.05; done) & "
      "while :; do wait; done");
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
