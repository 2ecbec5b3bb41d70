// What commands can do to ccbox-init, and through the base filter to the host: each attack fails inside an
// enclosure, and the same action succeeds where it is allowed.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "support/init_process.hpp"
#include "support/temporary_directory.hpp"

using namespace ccbox;
using namespace ccbox::init;
using ccbox::test::eventually;
using ccbox::test::init_process;
using ccbox::test::init_setting;

namespace {

const std::string attempt_program = CCBOX_TEST_BINARY_DIR "/bin/attempt";
const std::string init_program = CCBOX_TEST_BINARY_DIR "/bin/ccbox-init";

// The errno of one attempt; 0: it succeeded.
int attempt(init_process& init, std::vector<std::string> words) {
  words.insert(words.begin(), attempt_program);
  const auto outcome = init.run(init_process::command(std::move(words)));
  REQUIRE_FALSE(outcome.failed.has_value());
  REQUIRE_FALSE(outcome.exit.signalled);
  REQUIRE(outcome.code() != 200);
  return outcome.code();
}

int attempt_call(init_process& init, long number, std::vector<std::string> arguments = {}) {
  arguments.insert(arguments.begin(), {"syscall", std::to_string(number)});
  return attempt(init, std::move(arguments));
}

int shell_code(init_process& init, const std::string& script) {
  return init.run(init_process::shell("{ " + script + "; } >/dev/null 2>&1")).code();
}

void check_alive(init_process& init) {
  CHECK(init.run(init_process::command({"true"})).code() == 0);
}

struct pipe_ends {
  unique_fd read, write;
};
pipe_ends make_pipe() {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  return {unique_fd(ends[0]), unique_fd(ends[1])};
}

// Starts a script whose standard output is ours; returns once it has printed `lines` lines.
std::uint64_t start_and_wait(init_process& init, const std::string& script, pipe_ends& output, int lines) {
  auto message = init_process::shell(script);
  message.flags = exec_stdout;
  const auto id = init.exec(message, {output.write.get()});
  output.write.reset();
  while (lines > 0) {
    pollfd readable{output.read.get(), POLLIN, 0};
    REQUIRE(poll(&readable, 1, 10000) == 1);
    char byte;
    REQUIRE(read(output.read.get(), &byte, 1) == 1);
    if (byte == '\n') --lines;
  }
  return id;
}

// Nobody holds the other end of this pipe any more: everybody who had it is dead.
bool all_dead(const pipe_ends& output) {
  for (;;) {
    pollfd readable{output.read.get(), POLLIN, 0};
    if (poll(&readable, 1, 10000) != 1) return false;
    char buffer[256];
    if (read(output.read.get(), buffer, sizeof buffer) <= 0) return true;
  }
}

// Processes that leave every group, session and parent behind, one of them stopped, one deaf to signals.
const std::string runaways =
    "sleep 300 & setsid sleep 300 & (setsid sh -c 'sleep 300 & exec sleep 300' &) ; "
    "(setsid sh -c 'kill -STOP $$' &) ; (setsid sh -c 'trap \"\" TERM HUP INT; echo deaf; while :; do sleep "
    "1; done' &) ; "
    "echo up; wait";

}  // namespace

TEST_CASE("no signal from inside reaches init") {
  init_process init(init_setting::enclosed);
  CHECK(shell_code(init, "sleep 60 & kill -KILL $!; wait $!") == 137);  // works on others
  for (const char* name :
       {"KILL", "STOP", "TERM", "INT", "HUP", "SEGV", "ABRT", "PIPE", "CHLD", "USR1", "RTMIN"}) {
    CAPTURE(name);
    shell_code(init, std::string("kill -") + name + " 1");
    check_alive(init);
  }
  CHECK(attempt_call(init, SYS_kill, {"-1", std::to_string(SIGKILL)}) ==
        ESRCH);  // everybody but init: nobody
  check_alive(init);
  CHECK(attempt_call(init, SYS_tgkill, {"1", "1", std::to_string(SIGKILL)}) == 0);  // sent, and ignored
  check_alive(init);
}

TEST_CASE("kill(-1) inside ends the commands and not init, which reports them") {
  init_process init(init_setting::enclosed);
  auto output = make_pipe();
  const auto id = start_and_wait(init, runaways, output, 2);
  init.run(init_process::shell("kill -KILL -1"));
  CHECK(init.wait_exit(id).value == SIGKILL);
  CHECK(all_dead(output));
  check_alive(init);
}

TEST_CASE("init cannot be traced, read or written, a process of one's own can") {
  init_process init(init_setting::enclosed);
  // The files below ask the kernel's ptrace rule; the filter never sees them.
  for (const char* file : {"mem", "environ", "maps", "auxv", "stack", "syscall"}) {
    CAPTURE(file);
    CHECK(shell_code(init, std::string("head -c 1 /proc/1/") + file) != 0);
  }
  for (const char* file : {"environ", "maps", "auxv"})
    CHECK(shell_code(init,
                     std::string("sleep 60 & head -c 1 /proc/$!/") + file + "; r=$?; kill $!; exit $r") == 0);
  CHECK(shell_code(init, "exec 5<>/proc/1/mem") != 0);
  CHECK(shell_code(init, "sleep 60 & exec 5<>/proc/$!/mem; kill $!") == 0);
  for (const char* link : {"exe", "cwd", "root", "fd/0", "fd/3", "ns/mnt"}) {
    CAPTURE(link);
    CHECK(shell_code(init, std::string("readlink /proc/1/") + link) != 0);
    CHECK(shell_code(init, std::string("exec 5</proc/1/") + link) != 0);
  }
  CHECK(shell_code(init, "readlink /proc/$$/exe /proc/$$/cwd /proc/$$/root /proc/$$/fd/0 /proc/$$/ns/mnt") ==
        0);
  check_alive(init);
}

TEST_CASE("init's limits, priority and processors are out of reach, a command's own are not") {
  init_process init(init_setting::enclosed);
  struct call {
    long number;
    std::vector<std::string> on_init, on_self;
  };
  for (const auto& each : std::vector<call>{
           {SYS_prlimit64, {"1", "4", "z:16", "0"}, {"0", "4", "z:16", "0"}},  // RLIMIT_CORE to 0
           {SYS_setpriority, {"0", "1", "19"}, {"0", "0", "19"}},
           {SYS_sched_setscheduler, {"1", "5", "z:8"}, {"0", "5", "z:8"}},  // SCHED_IDLE
           {SYS_ioprio_set, {"1", "1", "0x6000"}, {"1", "0", "0x6000"}}}) {
    CAPTURE(each.number);
    CHECK(attempt_call(init, each.number, each.on_init) == EPERM);
    CHECK(attempt_call(init, each.number, each.on_self) == 0);
  }
  CHECK(attempt_call(init, SYS_prlimit64, {"1", "4", "0", "z:16"}) == 0);  // reading harms nobody
}

TEST_CASE("init's command line says nothing of how it was started") {
  test::init_process::options named;
  const test::temporary_directory directory;
  named.program = directory / "a-name-that-says-too-much";
  std::filesystem::copy_file(init_program, named.program);
  named.argv = {named.program, "--channel", "3"};
  for (const auto& program : {named.program, init_program}) {
    named.program = program;
    init_process init(init_setting::enclosed, named);
    const auto outcome = init.run(init_process::shell("tr '\\0' ' ' </proc/1/cmdline; cat /proc/1/comm"));
    const std::string expected = "ccbox-init --channel 3 ";
    CHECK(outcome.output.substr(0, expected.size()) == expected);
    CHECK(outcome.output.find_first_not_of(' ', expected.size()) == outcome.output.find("ccbox-init\n"));
  }
}

TEST_CASE(
    "a program file that a command could overwrite is replaced by a sealed copy before anything starts") {
  // The escape: get hold of the file by /proc/PID/exe while it runs, and write to it afterwards.
  const test::temporary_directory directory;
  const auto start_traced = [](const std::string& program, const std::vector<std::string>& arguments,
                               int execs) {
    const pid_t pid = fork();
    if (pid == 0) {
      ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      std::vector<char*> argv{const_cast<char*>(program.c_str())};
      for (const auto& argument : arguments)
        argv.push_back(const_cast<char*>(argument.c_str()));
      argv.push_back(nullptr);
      execv(program.c_str(), argv.data());
      _exit(1);
    }
    for (int i = 0; i < execs; ++i) {
      if (i > 0) ptrace(PTRACE_CONT, pid, nullptr, nullptr);
      int status = 0;
      REQUIRE(waitpid(pid, &status, 0) == pid);
      REQUIRE(WIFSTOPPED(status));  // at each exec
    }
    return pid;
  };
  const auto overwrite_after_end = [](pid_t pid) {
    const auto exe = "/proc/" + std::to_string(pid) + "/exe";
    const unique_fd held(open(exe.c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(held);
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    const unique_fd writable(
        open(("/proc/self/fd/" + std::to_string(held.get())).c_str(), O_WRONLY | O_CLOEXEC));
    return writable && write(writable.get(), "evil", 4) == 4;
  };
  const auto copy_of = [&](const std::string& program, const std::string& name) {
    const auto path = directory / name;
    std::filesystem::copy_file(program, path);
    return path;
  };
  const auto first_bytes = [](const std::string& path) {
    std::string bytes(4, '\0');
    std::ifstream(path).read(bytes.data(), 4);
    return bytes;
  };

  const auto ordinary = copy_of("/bin/sleep", "sleep");
  CHECK(overwrite_after_end(start_traced(ordinary, {"60"}, 1)));
  CHECK(first_bytes(ordinary) == "evil");

  const auto own = copy_of(init_program, "own");
  CHECK_FALSE(overwrite_after_end(start_traced(own, {"--channel", "3"}, 2)));
  CHECK(first_bytes(own) == "\x7f\x45LF");
}

TEST_CASE("a script whose interpreter is /proc/self/exe gets nothing of init") {
  init_process init(init_setting::enclosed);
  const test::temporary_directory directory;
  const auto script = directory.write("script", "#!/proc/self/exe\n");
  chmod(script.c_str(), 0755);
  CHECK(init.run(init_process::command({script})).code() == 1);  // "usage"
  CHECK(init.run(init_process::command({"/proc/self/exe", "--channel", "3"})).code() == 1);
  check_alive(init);
}

TEST_CASE("the channel is nowhere in a command, whatever it starts") {
  for (const auto setting : {init_setting::enclosed, init_setting::unconfined}) {
    init_process init(setting);
    CHECK(init.run(init_process::shell("ls -l /proc/self/fd /proc/$$/fd | grep -c socket")).output == "0\n");
    const auto outcome = init.run(init_process::shell("(setsid sh -c 'ls /proc/self/fd' &) | cat"));
    CHECK(outcome.output == "0\n1\n2\n3\n");
  }
}

TEST_CASE("the end of the kernel side is the end of everything inside") {
  for (const auto setting : {init_setting::enclosed, init_setting::unconfined}) {
    init_process init(setting);
    auto output = make_pipe();
    start_and_wait(init, runaways, output, 2);
    init.close_channel();
    CHECK(all_dead(output));
    CHECK(WEXITSTATUS(init.wait_end()) == 0);
  }
}

TEST_CASE("nonsense on the channel is the end of everything inside") {
  for (const auto setting : {init_setting::enclosed, init_setting::unconfined}) {
    init_process init(setting);
    auto output = make_pipe();
    start_and_wait(init, runaways, output, 2);
    init.send_bytes(std::string(64, '\xee'));
    CHECK(all_dead(output));
    CHECK(WEXITSTATUS(init.wait_end()) == 1);
  }
}

TEST_CASE("processes that fork and end all the time do not outlive the session") {
  for (const auto setting : {init_setting::enclosed, init_setting::unconfined}) {
    for (const bool shut_down : {true, false}) {
      init_process init(setting);
      auto output = make_pipe();
      start_and_wait(init, "for i in 1 2 3 4 5; do " + attempt_program + " hop & done; echo up", output, 1);
      if (shut_down)
        init.shutdown(10);
      else
        init.close_channel();
      CHECK(all_dead(output));
      CHECK(WEXITSTATUS(init.wait_end()) == 0);
    }
  }
}

TEST_CASE("init killed from outside takes its enclosure with it, and its commands where there is none") {
  for (const auto setting : {init_setting::enclosed, init_setting::unconfined}) {
    init_process init(setting);
    auto output = make_pipe();
    start_and_wait(init, setting == init_setting::enclosed ? runaways : "echo up; echo; exec sleep 300",
                   output, 2);
    kill(init.pid(), SIGKILL);
    CHECK(all_dead(output));
  }
}

TEST_CASE("a directory as a standard descriptor would lead out of the enclosure and is refused there") {
  const unique_fd directory(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
      handle(open("/", O_PATH | O_CLOEXEC));
  for (const auto setting : {init_setting::enclosed, init_setting::unconfined})
    for (const int fd : {directory.get(), handle.get()}) {
      init_process init(setting);
      auto message = init_process::command({"true"});
      message.flags = exec_stdin;
      const auto answer = init.wait_for(frame_type::started, init.exec(message, {fd}));
      if (setting == init_setting::unconfined) {
        CHECK(answer.header.type == frame_type::started);
        continue;
      }
      REQUIRE(answer.header.type == frame_type::failed);
      CHECK(decode_failed(answer.payload)->stage == exec_stage::descriptors);
      CHECK(decode_failed(answer.payload)->error_number == EISDIR);
    }
}

TEST_CASE("a socket as a standard descriptor is refused unless it is connected for good") {
  const auto make_pair = [](int type) {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) == 0);
    return std::pair{unique_fd(ends[0]), unique_fd(ends[1])};
  };
  const auto stream = make_pair(SOCK_STREAM), packets = make_pair(SOCK_SEQPACKET),
             datagrams = make_pair(SOCK_DGRAM);
  const unique_fd loose(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      internet(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(loose);
  REQUIRE(internet);
  struct given {
    const char* name;
    int fd;
    bool refused;
  };
  for (const auto setting : {init_setting::enclosed, init_setting::unconfined})
    for (const auto& [name, fd, refused] :
         {given{"stream pair", stream.first.get(), false}, given{"packet pair", packets.first.get(), false},
          given{"datagram pair", datagrams.first.get(), true}, given{"unconnected stream", loose.get(), true},
          given{"internet", internet.get(), true}})
      for (const unsigned place : {exec_stdin, exec_stdout, exec_stderr}) {
        CAPTURE(name);
        init_process init(setting);
        auto message = init_process::command({"true"});
        message.flags = place;
        const auto answer = init.wait_for(frame_type::started, init.exec(message, {fd}));
        if (!refused || setting == init_setting::unconfined) {
          CHECK(answer.header.type == frame_type::started);
          continue;
        }
        REQUIRE(answer.header.type == frame_type::failed);
        CHECK(decode_failed(answer.payload)->stage == exec_stage::descriptors);
        CHECK(decode_failed(answer.payload)->error_number == ESOCKTNOSUPPORT);
      }
}

TEST_CASE("a working directory outside of the root is refused though chdir would go there") {
  for (const bool detached : {false, true}) {
    test::init_process::options with_holder;
    // Process 2 stands in a mount of its own, which then is, or is not, taken out of the tree.
    with_holder.before_exec = [detached] {
      if (mount("tmpfs", "/mnt", "tmpfs", 0, "mode=755") != 0 || chdir("/mnt") != 0) _exit(97);
      if (fork() == 0) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
        __user_cap_data_struct none[2] = {};
        syscall(SYS_capset, &header, none);
        execl("/bin/sleep", "sleep", "300", nullptr);
        _exit(96);
      }
      if (detached && umount2("/mnt", MNT_DETACH) != 0) _exit(95);
    };
    init_process init(init_setting::enclosed, with_holder);
    auto message = init_process::command({"pwd"});
    message.cwd = "/proc/2/cwd";
    REQUIRE(eventually([&] { return shell_code(init, "grep -q sleep /proc/2/comm") == 0; }));
    const auto outcome = init.run(message);
    if (!detached) {
      CHECK(outcome.output == "/mnt\n");
      continue;
    }
    REQUIRE(outcome.failed.has_value());
    CHECK(outcome.failed->stage == exec_stage::chdir);
    CHECK(outcome.failed->error_number == ENOENT);
  }
}

TEST_CASE("a /dev/ptmx that is something else neither stops init nor gets used") {
  const test::temporary_directory directory;
  const auto fifo = directory / "fifo";
  REQUIRE(mkfifo(fifo.c_str(), 0666) == 0);
  test::init_process::options replaced;
  auto message = init_process::shell("tty");
  message.flags = exec_pty;
  replaced.before_exec = [&fifo] {
    if (mount(fifo.c_str(), "/dev/ptmx", nullptr, MS_BIND, nullptr) != 0) _exit(97);
  };
  {
    init_process init(init_setting::enclosed, replaced);
    const auto started = init.wait_for(frame_type::started, init.exec(message));
    CHECK(started.header.type == frame_type::started);
    CHECK(started.descriptors.size() == 1);
  }
  replaced.before_exec = [&fifo] {
    for (const char* node : {"/dev/ptmx", "/dev/pts/ptmx"})
      if (mount(fifo.c_str(), node, nullptr, MS_BIND, nullptr) != 0) _exit(97);
  };
  init_process init(init_setting::enclosed, replaced);
  const auto answer = init.wait_for(frame_type::started, init.exec(message));
  REQUIRE(answer.header.type == frame_type::failed);
  CHECK(decode_failed(answer.payload)->stage == exec_stage::pty);
  CHECK(decode_failed(answer.payload)->error_number == ENODEV);
  check_alive(init);
}

TEST_CASE("commands have no capability but root's for files, and can gain none") {
  init_process init(init_setting::enclosed);
  const auto status = init.run(
      init_process::shell("grep -E '^(Cap(Inh|Prm|Eff|Amb)|NoNewPrivs|Seccomp):' /proc/self/status"));
  const std::string held =
      geteuid() == 0 ? "000000000000001b" : "0000000000000000";  // CHOWN DAC_OVERRIDE FOWNER FSETID
  CHECK(status.output == "CapInh:\t0000000000000000\nCapPrm:\t" + held + "\nCapEff:\t" + held +
                             "\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n");
  if (geteuid() == 0)
    CHECK(init.run(init_process::shell("grep CapBnd /proc/self/status")).output == "CapBnd:\t" + held + "\n");
  init_process unconfined(init_setting::unconfined);  // programs like sudo work there as ever
  CHECK(unconfined.run(init_process::shell("grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status")).output ==
        "NoNewPrivs:\t0\nSeccomp:\t0\n");
}

TEST_CASE("the base filter refuses in the running kernel what it says, and the same call works outside") {
  init_process inside(init_setting::enclosed), outside(init_setting::unconfined);
  struct call {
    const char* name;
    long number;
    std::vector<std::string> arguments;
    int refused;
  };
  const auto number = [](auto value) { return std::to_string(static_cast<unsigned long>(value)); };
  const std::vector<call> calls{
      {"clone3 as a plain fork", SYS_clone3, {"z:64", "64"}, ENOSYS},
      {"clone into a user namespace", SYS_clone, {number(CLONE_NEWUSER | SIGCHLD)}, EPERM},
      {"clone, flag with rubbish above", SYS_clone, {number(0x100000000ul | CLONE_NEWUSER | SIGCHLD)}, EPERM},
      {"unshare a user namespace", SYS_unshare, {number(CLONE_NEWUSER)}, EPERM},
      {"open_tree", 428, {"-100", "s:/", "0"}, EPERM},
      {"ptrace(TRACEME)", SYS_ptrace, {"0", "0", "0", "0"}, EPERM},
      {"process_vm_readv", SYS_process_vm_readv, {"1", "0", "0", "0", "0", "0"}, EPERM},
      {"keyctl(GET_KEYRING_ID)", SYS_keyctl, {"0", "-3", "1"}, EPERM},
      {"add_key", SYS_add_key, {"s:user", "s:ccbox", "s:x", "1", "-2"}, EPERM},
      {"userfaultfd", SYS_userfaultfd, {"1"}, EPERM},
      {"personality(READ_IMPLIES_EXEC)", SYS_personality, {"0x400000"}, EPERM},
      {"AF_UNIX socket", SYS_socket, {"1", "1", "0"}, EPERM},
      {"AF_UNIX datagram pair", SYS_socketpair, {"1", "2", "0", "z:8"}, EPERM},
      {"kobject netlink", SYS_socket, {"16", "3", "15"}, EPROTONOSUPPORT},
  };
  for (const auto& call : calls) {
    CAPTURE(std::string(call.name));
    CHECK(attempt_call(inside, call.number, call.arguments) == call.refused);
    // process_vm_readv of process 1 is refused outside too, for a reason of its own.
    if (call.number != SYS_process_vm_readv) CHECK(attempt_call(outside, call.number, call.arguments) == 0);
  }
  CHECK(attempt_call(outside, SYS_process_vm_readv, {"0", "0", "0", "0", "0", "0"}) != EPERM);
  CHECK(attempt_call(inside, SYS_process_vm_readv, {"0", "0", "0", "0", "0", "0"}) == EPERM);
  for (const long family : {17, 38, 40, 42})  // PACKET ALG VSOCK QIPCRTR
    CHECK(attempt_call(inside, SYS_socket, {number(family), "3", "0"}) == EAFNOSUPPORT);
  CHECK(attempt_call(inside, 425, {"8", "z:120"}) == EPERM);  // io_uring_setup

  // What programs need still works.
  CHECK(attempt_call(inside, SYS_clone, {number(SIGCHLD)}) == 0);
  CHECK(attempt_call(inside, SYS_socket, {"2", "1", "0"}) == 0);
  CHECK(attempt_call(inside, SYS_socket, {"10", "2", "0"}) == 0);
  CHECK(attempt_call(inside, SYS_socket, {"16", "3", "0"}) == 0);
  CHECK(attempt_call(inside, SYS_socketpair, {"1", "1", "0", "z:8"}) == 0);
  CHECK(attempt_call(inside, SYS_socketpair, {"1", "5", "0", "z:8"}) == 0);
  CHECK(attempt_call(inside, SYS_personality, {"0x40000"}) == 0);
}

TEST_CASE("a datagram pair does not reach a socket of the host") {
  const test::temporary_directory directory;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const auto path = directory / "s";
  REQUIRE(path.size() < sizeof address.sun_path);
  std::strcpy(address.sun_path, path.c_str());
  const unique_fd host(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  REQUIRE(bind(host.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  char byte;
  init_process inside(init_setting::enclosed), outside(init_setting::unconfined);
  CHECK(attempt(inside, {"send-datagram", path}) == EPERM);
  CHECK(recv(host.get(), &byte, 1, 0) < 0);
  CHECK(attempt(outside, {"send-datagram", path}) == 0);
  CHECK(recv(host.get(), &byte, 1, 0) == 1);
}

TEST_CASE("typing into one's own terminal is refused in both spellings") {
  for (const auto setting : {init_setting::enclosed, init_setting::unconfined}) {
    init_process init(setting);
    for (const char* spelling : {"0x5412", "0x100005412", "0xffffffff00005412"}) {
      CAPTURE(spelling);
      auto message = init_process::command(
          {attempt_program, "syscall", std::to_string(SYS_ioctl), "0", spelling, "s:x"});
      message.flags = exec_pty;
      const auto id = init.exec(message);
      const auto started = init.wait_for(frame_type::started, id);  // holds the master
      const auto code = static_cast<int>(init.wait_exit(id).value);
      if (setting == init_setting::enclosed)
        CHECK(code == EPERM);
      else
        CHECK((code == 0 || code == EIO));  // EIO: switched off for the whole system
    }
  }
}

TEST_CASE("no file becomes set-user-id inside") {
  const test::temporary_directory directory;
  struct call {
    const char* name;
    long number;
    std::vector<std::string> before, after;  // around the path
  };
  const std::string here = std::to_string(static_cast<unsigned long>(AT_FDCWD));
  for (const auto& call : std::vector<call>{
           {"fchmodat", SYS_fchmodat, {here}, {"04755"}},
           {"openat", SYS_openat, {here}, {std::to_string(O_CREAT | O_WRONLY), "04755"}},
           {"mknodat", SYS_mknodat, {here}, {"0104755", "0"}},
#ifdef SYS_chmod
           {"chmod", SYS_chmod, {}, {"04755"}},
           {"open", SYS_open, {}, {std::to_string(O_CREAT | O_WRONLY), "04755"}},
           {"creat", SYS_creat, {}, {"04755"}},
           {"mknod", SYS_mknod, {}, {"0104755", "0"}},
#endif
       }) {
    CAPTURE(std::string(call.name));
    for (const auto setting : {init_setting::enclosed, init_setting::unconfined}) {
      const auto path =
          directory / (std::string(call.name) + (setting == init_setting::enclosed ? "-in" : "-out"));
      const bool changes = std::string(call.name).find("chmod") != std::string::npos;
      if (changes) std::ofstream(path) << "x";
      init_process init(setting);
      auto arguments = call.before;
      arguments.push_back("s:" + path);
      arguments.insert(arguments.end(), call.after.begin(), call.after.end());
      CHECK(attempt_call(init, call.number, arguments) == (setting == init_setting::enclosed ? EPERM : 0));
      struct stat file {};
      const bool there = stat(path.c_str(), &file) == 0;
      CHECK(there == (changes || setting == init_setting::unconfined));
      CHECK((file.st_mode & S_ISUID) ==
            (setting == init_setting::enclosed ? 0u : static_cast<unsigned>(S_ISUID)));
    }
  }
}
