// One session, through the port with backend `none`: what a session promises does not depend on the boundary.
#include "session.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fstream>
#include <set>

#include "gate.hpp"
#include "limits.hpp"
#include "support/booted.hpp"
#include "support/event_loop.hpp"
#include "support/os_faults.hpp"
#include "support/result_printing.hpp"
#include "support/temporary_directory.hpp"
#include "support/waiting.hpp"

using namespace ccbox;
namespace asio = boost::asio;

namespace {

struct fixture {
  test::event_loop loop;
  test::temporary_directory dir;
  event_bus bus;
  sandbox_port port{loop.executor(), test::shared_boot().context(), bus};
  test::recorder seen{bus, loop.executor()};

  std::shared_ptr<session> launch(resource_limits limits = {}) {
    sandbox_spec spec = test::spec_for("s1", "none", dir.path());
    spec.limits = limits;
    auto s = loop.run(port.launch(std::move(spec)));
    REQUIRE_MESSAGE(s, s.error().what);
    return *s;
  }
  exec_request shell(const std::string& script) {
    exec_request r;
    r.argv = {"sh", "-c", script};
    return r;
  }
  exec_handle begin(session& s, exec_request r) {
    auto e = loop.run(s.exec(std::move(r)));
    REQUIRE_MESSAGE(e, e.error().what);
    return std::move(*e);
  }
  exec_handle begin(session& s, const std::string& script) { return begin(s, shell(script)); }
  int code(session& s, const std::string& script) {
    const auto status = loop.run(s.wait(begin(s, script).exec_id));
    REQUIRE_MESSAGE(status, status.error().what);
    return status->code();
  }
  void until(const std::string& text) {
    loop.run_until([&] { return seen.text().find(text) != std::string::npos; });
  }
  // The events so far, once the recorder has handled all that was published.
  std::string events() {
    loop.run(seen.subscription().drained());
    return seen.text();
  }
};

// A wall time in which a command has set its trap on any machine, however busy.
constexpr int enough_to_begin_ms = 1500;

resource_limits wall_time(std::uint64_t ms) {
  resource_limits l;
  l.wall_time_ms = ms;
  return l;
}

}  // namespace

TEST_CASE_FIXTURE(fixture, "a session starts warm, runs commands, and ends destroyed") {
  auto s = launch();
  CHECK(s->handle().state == sandbox_state::warm);
  CHECK(events() == "starting ready");
  CHECK(code(*s, "echo out; exit 3") == 3);
  CHECK(events() == "starting ready stdout(1)='out\\n' exit(1)=3");
  CHECK(code(*s, "echo err >&2") == 0);
  CHECK(events() == "starting ready stdout(1)='out\\n' exit(1)=3 stderr(2)='err\\n' exit(2)=0");
  loop.run(s->destroy());
  CHECK(s->handle().state == sandbox_state::destroyed);
  CHECK_FALSE(s->killed());
  CHECK(events() == "starting ready stdout(1)='out\\n' exit(1)=3 stderr(2)='err\\n' exit(2)=0");
}

TEST_CASE_FIXTURE(fixture, "the handle tells what serves the session") {
  auto s = launch();
  const sandbox_handle h = s->handle();
  CHECK(h.session_id == "s1");
  CHECK(h.backend == sandbox_backend::none);
  CHECK(h.details.at("plugin") == "none");
  CHECK(h.details.at("workdir") == dir.path());
  CHECK(h.details.at("enforced") == "resource_limits");
  CHECK(h.details.count("without") == 0);
  CHECK(::kill(std::stoi(h.details.at("pid")), 0) == 0);
}

TEST_CASE_FIXTURE(fixture, "a session is active while commands run and warm between them") {
  auto s = launch();
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  exec_request r = shell("read line");
  r.descriptors[0].reset(ends[0]);
  const auto first = begin(*s, std::move(r));
  CHECK(s->handle().state == sandbox_state::active);
  CHECK(code(*s, "true") == 0);
  CHECK(s->handle().state == sandbox_state::active);
  ::close(ends[1]);
  CHECK(loop.run(s->wait(first.exec_id)));
  CHECK(s->handle().state == sandbox_state::warm);
  CHECK(code(*s, "true") == 0);
  CHECK(s->handle().state == sandbox_state::warm);
}

TEST_CASE_FIXTURE(fixture, "a command has the session's directory and environment, and its own on top") {
  auto s = launch();
  exec_request r = shell("pwd; echo \"$A\"");
  r.extra_env = {{"A", "mine"}};
  const auto e = begin(*s, std::move(r));
  loop.run(s->wait(e.exec_id));
  CHECK(seen.output(e.exec_id) == dir.path() + "\nmine\n");
  r = shell("pwd");
  r.cwd = "/usr";
  const auto elsewhere = begin(*s, std::move(r));
  loop.run(s->wait(elsewhere.exec_id));
  CHECK(seen.output(elsewhere.exec_id) == "/usr\n");
}

TEST_CASE_FIXTURE(fixture,
                  "a command that cannot be started is an error without events, and the session goes on") {
  auto s = launch();
  exec_request r;
  r.argv = {"no-such-program"};
  r.extra_env = {{"PATH", "/usr/bin:/bin"}};
  CHECK(loop.run(s->exec(std::move(r))).error().code == error_code::not_found);
  r = {};
  CHECK(loop.run(s->exec(std::move(r))).error().code == error_code::invalid_argument);
  CHECK(s->handle().state == sandbox_state::warm);
  CHECK(events() == "starting ready");
  CHECK(code(*s, "exit 5") == 5);
}

TEST_CASE_FIXTURE(fixture, "many commands of one session run at once, and their output is not mixed up") {
  auto s = launch();
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 40; ++i) {
    ids.push_back(
        begin(*s, "for n in 1 2 3 4 5; do echo $$; echo $$ >&2; done; exit " + std::to_string(i)).exec_id);
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    CHECK(loop.run(s->wait(ids[i])).value().code() == static_cast<int>(i));
    const std::string out = seen.output(ids[i]);
    const std::string line = out.substr(0, out.find('\n') + 1);
    CHECK(out == line + line + line + line + line);
    CHECK(seen.output(ids[i], sandbox_event_type::stderr_data) == out);
  }
  CHECK(s->handle().state == sandbox_state::warm);
}

TEST_CASE_FIXTURE(fixture, "events are numbered without gaps and a command's exit is its last") {
  auto s = launch();
  for (int i = 0; i < 10; ++i)
    begin(*s, "echo a; echo b >&2");
  loop.run(s->destroy());
  events();
  std::uint64_t expected = 1;
  std::set<std::uint64_t> over;
  for (const sandbox_event& e : seen.events()) {
    CHECK(e.sequence == expected++);
    CHECK(e.session_id == "s1");
    CHECK(over.count(e.exec_id) == 0);
    if (e.type == sandbox_event_type::exit) over.insert(e.exec_id);
  }
  CHECK(over.size() == 10);
}

TEST_CASE_FIXTURE(fixture, "bytes of any kind pass through as they are") {
  auto s = launch();
  const auto e = begin(*s, "printf '\\000\\377\\n\\r\\033[0m'");
  loop.run(s->wait(e.exec_id));
  events();
  CHECK(seen.output(e.exec_id) == std::string("\0\377\n\r\033[0m", 8));
}

namespace {

asio::awaitable<void> slow(std::shared_ptr<gate> until, std::shared_ptr<std::string> text,
                           sandbox_event event) {
  if (event.type != sandbox_event_type::stdout_data) co_return;
  co_await until->wait();
  *text += event.data;
}

asio::awaitable<void> pass(int ms) {
  asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::milliseconds(ms));
  co_await timer.async_wait(asio::use_awaitable);
}

}  // namespace

TEST_CASE_FIXTURE(fixture, "a slow subscriber makes the command wait, and loses nothing") {
  auto go = std::make_shared<gate>(loop.strand());
  auto text = std::make_shared<std::string>();
  auto subscription = bus.subscribe(
      loop.strand(), "s1", [=](sandbox_event e) { return slow(go, text, std::move(e)); }, 256 << 10);
  auto s = launch();
  // Tells through a file, not through its output, how far it has come.
  const std::string progress = dir / "progress";
  const auto e =
      begin(*s, "for i in $(seq 256); do head -c 65536 /dev/zero; echo $i > " + progress + "; done");
  auto done = loop.begin(s->wait(e.exec_id));
  const auto written = [&] {
    int chunks = 0;
    std::ifstream(progress) >> chunks;
    return chunks;
  };
  loop.run_until([&] { return written() > 0; });
  loop.run(pass(300));  // far longer than the command takes when nobody holds it up
  CHECK_FALSE(done->over);
  CHECK(subscription.queued_bytes() <= 256 << 10);
  // What fits: the queue, one chunk in the pump, one in the subscriber, and the pipe.
  CHECK(written() < 16);
  asio::post(loop.strand(), [&] { go->open(); });
  CHECK(loop.finish(done).value().code() == 0);
  loop.run(subscription.drained());
  CHECK(text->size() == 256 * 65536);
}

TEST_CASE_FIXTURE(fixture, "a background process that keeps the output open does not hold back the exit") {
  auto s = launch();
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  exec_request r = shell("(read line; echo late; read line) & echo early");
  // Not standard input: the shell gives its background jobs /dev/null for that.
  r.argv[2] = "exec 3<&0; (read line <&3; echo late; read line <&3) & echo early";
  r.descriptors[0].reset(ends[0]);
  const auto e = begin(*s, std::move(r));
  CHECK(loop.run(s->wait(e.exec_id)).value().code() == 0);
  CHECK(events() == "starting ready stdout(1)='early\\n' exit(1)=0");
  CHECK(s->handle().state == sandbox_state::warm);
  // It lives on and is still heard.
  REQUIRE(::write(ends[1], "\n", 1) == 1);
  until("late");
  CHECK(events() == "starting ready stdout(1)='early\\n' exit(1)=0 stdout(1)='late\\n'");
  loop.run(s->destroy());
  CHECK(s->handle().state == sandbox_state::destroyed);
  ::close(ends[1]);
}

TEST_CASE_FIXTURE(fixture, "output that is still in the pipe when a command ends comes before its exit") {
  auto s = launch();
  for (int i = 0; i < 20; ++i) {
    const auto e = begin(*s, "head -c 60000 /dev/zero; sleep 100 & exit 0");
    CHECK(loop.run(s->wait(e.exec_id)).value().code() == 0);
    events();
    CHECK(seen.output(e.exec_id).size() == 60000);
  }
}

TEST_CASE_FIXTURE(fixture, "passed descriptors are the command's own, and only its exit is an event") {
  auto s = launch();
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  unique_fd reader(ends[0]);
  exec_request r = shell("echo out; echo err >&2");
  r.descriptors[1].reset(ends[1]);
  r.output = output_mode::passed;
  const auto e = begin(*s, std::move(r));
  char buffer[16];
  CHECK(::read(reader.get(), buffer, sizeof buffer) == 4);
  CHECK(::read(reader.get(), buffer, sizeof buffer) == 0);
  loop.run(s->wait(e.exec_id));
  CHECK(events() == "starting ready exit(1)=0");
}

TEST_CASE_FIXTURE(fixture, "a captured terminal can be resized, a passed one is the caller's") {
  auto s = launch();
  exec_request r = shell("stty size; trap 'stty size; exit 4' WINCH; echo set; while :; do sleep 0.01; done");
  r.pty = window_size{10, 20};
  const auto e = begin(*s, std::move(r));
  CHECK_FALSE(e.pty_master);
  until("set");
  CHECK(loop.run(s->resize(e.exec_id, {30, 65536 + 40})).error().code == error_code::invalid_argument);
  REQUIRE(loop.run(s->resize(e.exec_id, {30, 40})));
  CHECK(loop.run(s->wait(e.exec_id)).value().code() == 4);
  CHECK(events() == "starting ready stdout(1)='10 20\\r\\nset\\r\\n30 40\\r\\n' exit(1)=4");
  CHECK(loop.run(s->resize(e.exec_id, {30, 40})).error().code == error_code::illegal_state);

  r = shell("read line");
  r.pty = window_size{};
  r.output = output_mode::passed;
  const auto passed = begin(*s, std::move(r));
  REQUIRE(passed.pty_master);
  CHECK(loop.run(s->resize(passed.exec_id, {30, 40})).error().code == error_code::illegal_state);
  REQUIRE(::write(passed.pty_master.get(), "\n", 1) == 1);
  CHECK(loop.run(s->wait(passed.exec_id)).value().code() == 0);
  CHECK(loop.run(s->resize(99, {30, 40})).error().code == error_code::not_found);
}

TEST_CASE_FIXTURE(fixture, "signals reach a command, and a command that is not there is not found") {
  auto s = launch();
  const auto e = begin(*s, "trap 'exit 9' INT; echo set; while :; do sleep 0.01; done");
  until("set");
  REQUIRE(loop.run(s->signal(e.exec_id, SIGINT)));
  CHECK(loop.run(s->wait(e.exec_id)).value().code() == 9);
  CHECK(loop.run(s->signal(99, SIGINT)).error().code == error_code::not_found);
  CHECK(loop.run(s->wait(99)).error().code == error_code::not_found);
  CHECK(loop.run(s->wait(e.exec_id)).value().code() == 9);  // ended commands are remembered
}

TEST_CASE_FIXTURE(fixture, "destroy ends running commands: exit, then killed for manual") {
  auto s = launch();
  const auto e = begin(*s, "echo set; exec sleep 100");
  until("set");
  auto waiting = loop.begin(s->wait(e.exec_id));
  loop.run(s->destroy());
  CHECK(events() == "starting ready stdout(1)='set\\n' exit(1)=143 killed=manual");
  CHECK(loop.finish(waiting).value().code() == 143);
  CHECK(s->killed() == kill_reason::manual);
  CHECK(s->handle().state == sandbox_state::destroyed);
  CHECK_FALSE(s->handle().failure);
}

TEST_CASE_FIXTURE(fixture, "destroy kills what ignores TERM, after the grace") {
  auto s = launch();
  begin(*s, "trap '' TERM; echo set; while :; do sleep 100; done");
  until("set");
  loop.run(s->destroy(50));
  CHECK(events() == "starting ready stdout(1)='set\\n' exit(1)=137 killed=manual");
}

TEST_CASE_FIXTURE(fixture, "destroying twice, at once or later, is the same as once") {
  auto s = launch();
  begin(*s, "exec sleep 100");
  auto first = loop.begin(s->destroy()), second = loop.begin(s->destroy());
  loop.finish(first);
  loop.finish(second);
  loop.run(s->destroy());
  CHECK(events() == "starting ready exit(1)=143 killed=manual");
  CHECK(s->handle().state == sandbox_state::destroyed);
}

TEST_CASE_FIXTURE(fixture, "a destroyed session takes no commands") {
  auto s = launch();
  loop.run(s->destroy());
  CHECK(loop.run(s->exec(shell("true"))).error().code == error_code::illegal_state);
  CHECK(loop.run(s->exec(shell("true"))).error().what ==
        "session 's1' takes no commands: its state is destroyed");
  CHECK_FALSE(loop.run(s->signal(1, SIGTERM)));
}

TEST_CASE_FIXTURE(fixture, "destroy does not wait for ever for a subscriber that is stuck") {
  auto never = std::make_shared<gate>(loop.strand());
  auto text = std::make_shared<std::string>();
  auto subscription = bus.subscribe(
      loop.strand(), "s1", [=](sandbox_event e) { return slow(never, text, std::move(e)); }, 1 << 10);
  auto s = launch();
  begin(*s, "exec cat /dev/zero");
  until("stdout");
  loop.run(s->destroy(0));
  CHECK(s->handle().state == sandbox_state::destroyed);
  subscription.cancel();
  until("killed=manual");  // the others get the end of the story once it is gone
}

TEST_CASE_FIXTURE(fixture, "the wall time ends the session: killed for timeout, state error") {
  auto s = launch(wall_time(enough_to_begin_ms));
  const auto e = begin(*s, "exec sleep 100");
  until("killed");
  CHECK(events() == "starting ready exit(1)=143 killed=timeout");
  CHECK(s->killed() == kill_reason::timeout);
  CHECK(s->handle().state == sandbox_state::error);
  CHECK(s->handle().failure->code == error_code::timeout);
  CHECK(loop.run(s->wait(e.exec_id)).value().code() == 143);
  CHECK(loop.run(s->exec(shell("true"))).error().code == error_code::illegal_state);
  loop.run(s->destroy());
  CHECK(s->handle().state == sandbox_state::destroyed);
  CHECK(s->killed() == kill_reason::timeout);
}

TEST_CASE_FIXTURE(fixture, "a session without a running command is ended by its wall time too") {
  auto s = launch(wall_time(50));
  until("killed");
  CHECK(events() == "starting ready killed=timeout");
}

TEST_CASE_FIXTURE(fixture, "of two reasons to end a session the first wins") {
  auto s = launch(wall_time(enough_to_begin_ms));
  begin(*s, "trap 'echo warned' TERM; echo set; while :; do sleep 0.01; done");
  until("warned");
  loop.run(s->destroy(0));
  CHECK(seen.count(sandbox_event_type::killed) == 1);
  CHECK(s->killed() == kill_reason::timeout);

  event_bus other_bus;
  sandbox_port other(loop.executor(), test::shared_boot().context(), other_bus);
  test::recorder other_seen(other_bus, loop.executor());
  sandbox_spec spec = test::spec_for("s2", "none", dir.path());
  spec.limits = wall_time(enough_to_begin_ms);
  auto second = loop.run(other.launch(std::move(spec))).value();
  begin(*second, "trap '' TERM; echo set; while :; do sleep 0.01; done");
  loop.run_until([&] { return other_seen.count(sandbox_event_type::stdout_data) > 0; });
  auto destroying = loop.begin(second->destroy(60000));
  loop.run(pass(enough_to_begin_ms));  // its wall time runs out during the grace
  loop.run(second->destroy(0));
  loop.finish(destroying);
  CHECK(second->killed() == kill_reason::manual);
  CHECK(second->handle().state == sandbox_state::destroyed);
}

TEST_CASE_FIXTURE(fixture, "a process killed for memory ends the session: exit, then killed for oom") {
  resource_limits limits;
  limits.memory_bytes = 96 << 20;
  auto s = launch(limits);
  const auto e = begin(*s, "x=$(head -c 268435456 /dev/zero | tr '\\0' x); echo ${#x}");
  const auto status = loop.run(s->wait(e.exec_id));
  REQUIRE(status);
  CHECK(status->code() != 0);
  if (!probe_limits().memory.starts_with("cgroup")) {
    // An rlimit makes the allocation fail: that is the command's own failure.
    CHECK(s->handle().details.at("limits.memory") == "rlimit, address space of each process");
    CHECK(s->handle().state == sandbox_state::warm);
    return;
  }
  until("killed");
  CHECK(events().ends_with("exit(1)=" + std::to_string(status->code()) + " killed=oom"));
  CHECK(s->killed() == kill_reason::oom);
  CHECK(s->handle().state == sandbox_state::error);
  CHECK(s->handle().failure->hint == "raise limits.memoryBytes");
}

TEST_CASE_FIXTURE(fixture, "if the launcher is killed the session is in error, and its commands are over") {
  auto s = launch();
  const auto e = begin(*s, "echo set; exec sleep 100");
  until("set");
  const auto tree = test::open_process_tree(std::stoi(s->handle().details.at("pid")));
  auto waiting = loop.begin(s->wait(e.exec_id));
  ::kill(std::stoi(s->handle().details.at("pid")), SIGKILL);
  const auto status = loop.finish(waiting);
  CHECK(status.error().code == error_code::unavailable);
  loop.run_until([&] { return s->handle().state == sandbox_state::error; });
  CHECK(s->handle().failure->what == "the enclosure ended unexpectedly: the launcher was killed by signal 9");
  CHECK(events() == "starting ready stdout(1)='set\\n' exit(1)=137");
  CHECK_FALSE(s->killed());
  CHECK(loop.run(s->exec(shell("true"))).error().what ==
        "session 's1' takes no commands: its state is error");
  loop.run(s->destroy());
  CHECK(s->handle().state == sandbox_state::destroyed);
  for (const unique_fd& process : tree)
    CHECK(test::wait_until_ended(process.get()));
}

TEST_CASE_FIXTURE(fixture, "letting go of a session ends what runs in it") {
  std::vector<unique_fd> tree;
  {
    event_bus own_bus;
    sandbox_port own(loop.executor(), test::shared_boot().context(), own_bus);
    auto s = loop.run(own.launch(test::spec_for("s2", "none", dir.path()))).value();
    test::recorder own_seen(own_bus, loop.executor());
    begin(*s, "echo set; exec sleep 100");
    loop.run_until([&] { return own_seen.count(sandbox_event_type::stdout_data) > 0; });
    tree = test::open_process_tree(std::stoi(s->handle().details.at("pid")));
    REQUIRE(tree.size() == 2);
    s.reset();
    loop.settle();
    CHECK_FALSE(test::wait_until_ended(tree[0].get(), 0));  // the port has it still
  }
  for (const unique_fd& process : tree)
    CHECK(test::wait_until_ended(process.get()));
  loop.settle();
}

TEST_CASE_FIXTURE(fixture, "a hundred sessions with commands leave nothing behind") {
  { loop.run(launch()->destroy()); }
  loop.settle();
  const auto before = test::take_footprint();
  for (int i = 0; i < 100; ++i) {
    auto s = launch();
    CHECK(code(*s, "echo x") == 0);
    if (i % 2 == 0) begin(*s, "exec sleep 100");
    loop.run(s->destroy(0));
  }
  loop.settle();
  CHECK(test::take_footprint() == before);
  CHECK(port.list().empty());
}
