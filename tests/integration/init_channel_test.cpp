#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include "support/init_process.hpp"

using namespace ccbox;
using namespace ccbox::init;
using ccbox::test::eventually;
using ccbox::test::init_process;
using ccbox::test::init_setting;

namespace {

std::chrono::nanoseconds cpu_time(pid_t pid) {
  clockid_t clock;
  timespec spent{};
  REQUIRE(clock_getcpuclockid(pid, &clock) == 0);
  REQUIRE(clock_gettime(clock, &spent) == 0);
  return std::chrono::seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
}

}  // namespace

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
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const unique_fd ready(ends[0]);
  unique_fd theirs(ends[1]);
  auto deaf = init_process::shell("trap '' TERM; echo; while :; do sleep 1; done");
  deaf.flags = exec_stdout;
  init.exec(deaf, {theirs.get()});
  theirs.reset();
  char byte;
  REQUIRE(read(ready.get(), &byte, 1) == 1);  // before its trap is set, TERM would end it, and init with it
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
