// The first seam, with the backends of this build on this host.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>

#include "sandbox_port.hpp"
#include "support/booted.hpp"
#include "support/event_loop.hpp"
#include "support/os_faults.hpp"
#include "support/result_printing.hpp"
#include "support/temporary_directory.hpp"
#include "support/waiting.hpp"

using namespace ccbox;
namespace asio = boost::asio;
namespace fs = std::filesystem;

namespace {

exec_request shell(const std::string& script) {
  exec_request r;
  r.argv = {"sh", "-c", script};
  return r;
}

struct fixture {
  test::event_loop loop;
  test::temporary_directory dir;
  event_bus bus;
  sandbox_port port{loop.executor(), test::shared_boot().context(), bus};
  test::recorder seen{bus, loop.executor()};

  std::shared_ptr<session> launch(const std::string& id, const std::string& backend) {
    auto s = loop.run(port.launch(test::spec_for(id, backend, dir.path())));
    REQUIRE_MESSAGE(s, s.error().what);
    return *s;
  }
  std::string output(session& s, exec_request r) {
    const auto e = loop.run(s.exec(std::move(r)));
    REQUIRE_MESSAGE(e, e.error().what);
    CHECK(loop.run(s.wait(e->exec_id)).value().code() == 0);
    loop.run(seen.subscription().drained());
    return seen.output(e->exec_id);
  }
};

bool is_set(const std::string& environment, const std::string& name) {
  return ("\n" + environment).find("\n" + name + "=") != std::string::npos;
}

}  // namespace

TEST_CASE_FIXTURE(fixture,
                  "a command in bubblewrap works in its directory and sees nothing else of the host") {
  dir.write("input", "from the host");
  test::temporary_directory hidden;
  hidden.write("secret", "x");
  auto s = launch("s1", "bubblewrap");
  CHECK(s->handle().backend == sandbox_backend::native);
  CHECK(s->handle().details.count("without") == 0);
  CHECK(s->handle().details.at("enforced").find("fs_binds_only") != std::string::npos);
  CHECK(output(*s, shell("cat input; echo made > output; pwd")) == "from the host" + dir.path() + "\n");
  CHECK(fs::file_size(dir / "output") == 5);
  CHECK(output(*s, shell("ls " + hidden.path() + " >/dev/null 2>&1 || echo hidden")) == "hidden\n");
  CHECK(output(*s, shell("exec cat /proc/1/comm")) != "");
  loop.run(s->destroy());
  CHECK(s->handle().state == sandbox_state::destroyed);
}

TEST_CASE_FIXTURE(fixture, "commands in an enclosure get a built environment, those of `none` the host's") {
  auto context = test::shared_boot().context();
  context.host.environment["LD_PRELOAD"] = "";
  context.host.environment["MY_OWN_THING"] = "1";
  context.host.environment["LANG"] = "C";
  sandbox_port own(loop.executor(), context, bus);
  for (const std::string backend : {"none", "bubblewrap"}) {
    CAPTURE(backend);
    auto s = loop.run(own.launch(test::spec_for(backend, backend, dir.path())));
    REQUIRE(s);
    const std::string text = output(**s, shell("exec env"));
    CHECK(is_set(text, "LD_PRELOAD") == (backend == "none"));
    CHECK(is_set(text, "MY_OWN_THING") == (backend == "none"));
    CHECK(is_set(text, "LANG"));
    CHECK(is_set(text, "PATH"));
    loop.run((*s)->destroy());
    seen.subscription().cancel();
    seen = test::recorder(bus, loop.executor());
  }
}

TEST_CASE_FIXTURE(fixture, "a session id in use is a conflict; once destroyed it is free") {
  auto s = launch("s1", "none");
  const auto again = loop.run(port.launch(test::spec_for("s1", "none", dir.path())));
  CHECK(again.error().code == error_code::conflict);
  CHECK(port.find("s1") == s);
  CHECK(port.list().size() == 1);
  loop.run(s->destroy());
  CHECK(port.find("s1") == nullptr);
  CHECK(port.list().empty());
  CHECK(launch("s1", "none") != s);
}

TEST_CASE_FIXTURE(fixture, "two launches of one id at once: one wins, the other is a conflict") {
  auto first = loop.begin(port.launch(test::spec_for("s1", "none", dir.path())));
  auto second = loop.begin(port.launch(test::spec_for("s1", "none", dir.path())));
  const bool a = loop.finish(first).has_value(), b = loop.finish(second).has_value();
  CHECK(a != b);
}

TEST_CASE_FIXTURE(fixture,
                  "a launch that cannot be enforced is refused, names the rule, and starts nothing") {
  sandbox_spec spec = test::spec_for("s1", "bubblewrap", dir.path());
  sandbox_context context = test::shared_boot().context();
  policy_config stricter = *context.config;
  stricter.required_linux |= CCBOX_RULE_EXEC_DENY;
  context.config = &stricter;
  sandbox_port strict_port{loop.executor(), context, bus};
  const auto before = test::take_footprint();
  const auto s = loop.run(strict_port.launch(std::move(spec)));
  REQUIRE_FALSE(s);
  CHECK(s.error().code == error_code::unenforceable);
  CHECK(s.error().what.find("exec_deny") != std::string::npos);
  CHECK_FALSE(s.error().hint.empty());
  CHECK(port.list().empty());
  loop.settle();
  CHECK(seen.text().empty());
  CHECK(test::take_footprint() == before);
}

TEST_CASE_FIXTURE(
    fixture, "a malformed spec, an unknown backend and a missing directory are errors that start nothing") {
  sandbox_spec spec = test::spec_for("../s1", "none", dir.path());
  CHECK(loop.run(port.launch(spec)).error().code == error_code::invalid_argument);
  spec = test::spec_for("s1", "no-such-backend", dir.path());
  CHECK_FALSE(loop.run(port.launch(spec)));
  spec = test::spec_for("s1", "bubblewrap", dir / "missing");
  CHECK_FALSE(loop.run(port.launch(spec)));
  CHECK(port.list().empty());
}

TEST_CASE_FIXTURE(fixture,
                  "a start that fails leaves the session in error, nothing running, and the id free again") {
  auto context = test::shared_boot().context();
  context.init_path = dir / "no-init";
  sandbox_port broken(loop.executor(), context, bus);
  const auto before = test::take_footprint();
  const auto s = loop.run(broken.launch(test::spec_for("s1", "none", dir.path())));
  REQUIRE_FALSE(s);
  CHECK(s.error().what.find("no-init") != std::string::npos);
  const auto left = broken.find("s1");
  REQUIRE(left);
  CHECK(left->handle().state == sandbox_state::error);
  CHECK(left->handle().failure->what == s.error().what);
  CHECK(broken.list().size() == 1);
  loop.settle();
  CHECK(test::take_footprint() == before);
  CHECK(loop.run(left->exec(shell("true"))).error().code == error_code::illegal_state);
  CHECK_FALSE(
      loop.run(broken.launch(test::spec_for("s1", "none", dir.path()))));  // the same again: no conflict
  loop.run(broken.find("s1")->destroy());
  CHECK(broken.list().empty());
}

TEST_CASE_FIXTURE(fixture,
                  "if the backend's tool fails, the error has its words and what the probe makes of them") {
  const std::string tool =
      dir.write("bwrap", "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n");
  REQUIRE(::chmod(tool.c_str(), 0755) == 0);
  test::booted own("plugins:\n  - path: bubblewrap.so\n    options: {bwrap: " + tool + "}\n");
  sandbox_port broken(loop.executor(), own.context(), bus);
  const auto s = loop.run(broken.launch(test::spec_for("s1", "bubblewrap", dir.path())));
  REQUIRE_FALSE(s);
  CHECK(s.error().code == error_code::unavailable);
  CHECK(s.error().what.find("No permissions to create new namespace") != std::string::npos);
  CHECK_FALSE(s.error().hint.empty());
  CHECK(broken.find("s1")->handle().state == sandbox_state::error);
}

TEST_CASE_FIXTURE(fixture, "a session can be destroyed while it starts") {
  auto launching = loop.begin(port.launch(test::spec_for("s1", "bubblewrap", dir.path())));
  std::shared_ptr<session> s;
  loop.run_until([&] { return (s = port.find("s1")) != nullptr; });
  CHECK(s->handle().state == sandbox_state::created);
  auto destroying = loop.begin(s->destroy());
  const auto launched = loop.finish(launching);
  loop.finish(destroying);
  CHECK(s->handle().state == sandbox_state::destroyed);
  if (launched) CHECK((*launched)->handle().state == sandbox_state::destroyed);
  CHECK(port.list().empty());
}

TEST_CASE_FIXTURE(fixture, "shutdown ends every session and refuses new ones") {
  for (int i = 0; i < 5; ++i) {
    auto s = launch("s" + std::to_string(i), i % 2 == 0 ? "none" : "bubblewrap");
    REQUIRE(loop.run(s->exec(shell("exec sleep 100"))));
  }
  loop.run(port.shutdown(100));
  CHECK(port.list().empty());
  loop.run(seen.subscription().drained());
  CHECK(seen.count(sandbox_event_type::killed) == 5);
  CHECK(loop.run(port.launch(test::spec_for("s9", "none", dir.path()))).error().code ==
        error_code::illegal_state);
  loop.run(port.shutdown());
}

TEST_CASE("destroying the port ends every enclosure, even if its executor never runs again") {
  const sandbox_context& context = test::shared_boot().context();  // its plugins stay open
  const auto before = test::take_footprint();
  test::temporary_directory dir;
  std::vector<unique_fd> tree;
  {
    test::event_loop loop;
    event_bus bus;
    sandbox_port port(loop.executor(), context, bus);
    for (const std::string backend : {"none", "bubblewrap"}) {
      auto s = loop.run(port.launch(test::spec_for(backend, backend, dir.path())));
      REQUIRE(s);
      REQUIRE(loop.run((*s)->exec(shell("setsid sleep 100 & exec sleep 100"))));
      for (auto& fd : test::open_process_tree(std::stoi((*s)->handle().details.at("pid")))) {
        tree.push_back(std::move(fd));
      }
    }
    REQUIRE(tree.size() >= 5);
  }
  for (const unique_fd& process : tree)
    CHECK(test::wait_until_ended(process.get()));
  tree.clear();
  CHECK(test::take_footprint() == before);
}

TEST_CASE("twelve sessions in one directory run at once on several threads") {
  const sandbox_context& context = test::shared_boot().context();  // its plugins stay open
  const auto before = test::take_footprint();
  test::temporary_directory dir;
  {
    asio::thread_pool pool(4);
    {
      event_bus bus;
      sandbox_port port(pool.get_executor(), context, bus);
      test::recorder seen(bus, pool.get_executor());
      std::vector<std::future<int>> codes;
      const auto work = [](sandbox_port& p, std::string directory, int number) -> asio::awaitable<int> {
        auto s = co_await p.launch(test::spec_for("s" + std::to_string(number), "bubblewrap", directory));
        if (!s) {
          MESSAGE(s.error().what);
          co_return -1;
        }
        int sum = 0;
        for (int i = 0; i < 5; ++i) {
          auto e = co_await (*s)->exec(
              shell("echo " + std::to_string(number) + "; exit " + std::to_string(number)));
          if (!e) co_return -2;
          auto status = co_await (*s)->wait(e->exec_id);
          if (!status) co_return -3;
          sum += status->code();
        }
        co_await (*s)->destroy();
        co_return sum;
      };
      for (int i = 0; i < 12; ++i)
        codes.push_back(asio::co_spawn(pool, work(port, dir.path(), i), asio::use_future));
      for (int i = 0; i < 12; ++i) {
        REQUIRE(codes[static_cast<std::size_t>(i)].wait_for(std::chrono::seconds(60)) ==
                std::future_status::ready);
        CHECK(codes[static_cast<std::size_t>(i)].get() == 5 * i);
      }
      asio::co_spawn(pool, seen.subscription().drained(), asio::use_future).get();
      for (const sandbox_event& e : seen.events()) {
        if (e.type == sandbox_event_type::stdout_data)
          CHECK(e.session_id == "s" + e.data.substr(0, e.data.size() - 1));
      }
      CHECK(seen.count(sandbox_event_type::exit) == 60);
    }
    pool.join();
  }
  CHECK(test::take_footprint() == before);
  CHECK(fs::is_empty(dir.path()));  // nothing is made in the user's tree
}

TEST_CASE("an owner that is killed leaves no process of its sessions") {
  test::temporary_directory dir;
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  unique_fd reader(ends[0]), writer(ends[1]);
  const pid_t owner = ::fork();
  if (owner == 0) {
    // A process of its own, as a server would be: not a copy of this one.
    ::dup2(writer.get(), 1);
    ::setenv("CCBOX_TEST_DIRECTORY", dir.path().c_str(), 1);
    const std::string self = fs::read_symlink("/proc/self/exe");
    ::execl(self.c_str(), self.c_str(), "--test-case=helper: own sessions and pause", "--no-skip", nullptr);
    ::_exit(127);
  }
  writer.reset();
  std::string text;
  for (char c = 0; text.find("<sessions run>") == std::string::npos && ::read(reader.get(), &c, 1) == 1;)
    text += c;
  REQUIRE(text.find("<sessions run>") != std::string::npos);
  const auto tree = test::open_process_tree(owner);
  REQUIRE(tree.size() >=
          10);  // owner; init and three; bwrap, its child or init, and three; perhaps a janitor
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  for (const unique_fd& process : tree)
    CHECK(test::wait_until_ended(process.get()));
  CHECK(fs::is_empty(dir.path()));
}

TEST_CASE("helper: own sessions and pause" * doctest::skip()) {
  const char* directory = std::getenv("CCBOX_TEST_DIRECTORY");
  REQUIRE(directory != nullptr);
  test::event_loop loop;
  event_bus bus;
  sandbox_port port(loop.executor(), test::shared_boot().context(), bus);
  test::recorder seen(bus, loop.executor());
  for (const std::string backend : {"none", "bubblewrap"}) {
    sandbox_spec spec = test::spec_for(backend, backend, directory);
    spec.limits.memory_bytes = 1 << 30;  // a cgroup, where there are any
    auto s = loop.run(port.launch(std::move(spec)));
    REQUIRE_MESSAGE(s, s.error().what);
    REQUIRE(loop.run((*s)->exec(shell("trap '' TERM HUP; setsid sleep 100 & sleep 100 & echo; wait"))));
  }
  loop.run_until([&] { return seen.count(sandbox_event_type::stdout_data) == 2; });
  REQUIRE(::write(1, "<sessions run>", 14) == 14);
  ::pause();
}

TEST_CASE_FIXTURE(fixture, "a hundred launches in bubblewrap leave nothing behind") {
  { loop.run(launch("s1", "bubblewrap")->destroy()); }
  loop.settle();
  const auto before = test::take_footprint();
  for (int i = 0; i < 100; ++i) {
    auto s = launch("s1", "bubblewrap");
    if (i % 10 == 0)
      CHECK(loop.run(s->wait(loop.run(s->exec(shell("exit 5"))).value().exec_id)).value().code() == 5);
    loop.run(s->destroy(0));
  }
  loop.settle();
  CHECK(test::take_footprint() == before);
}
