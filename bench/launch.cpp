// Starting: `ccbox run -- true` beside bare bwrap with the same view, firejail, and (asked for) the npm
// package @anthropic-ai/sandbox-runtime; a command in a warm session beside posix_spawn; what an idle session
// costs.
//
//   bench_launch [--rounds N] [--srt EXECUTABLE]
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "bare_bwrap.hpp"
#include "log.hpp"
#include "measure.hpp"
#include "paths.hpp"
#include "prepared_launch.hpp"
#include "sandbox_port.hpp"

using namespace ccbox;
using namespace ccbox::bench;
namespace asio = boost::asio;

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "bench: %s\n", what.c_str());
  std::exit(1);
}

template <class T>
T need(result<T> value) {
  if (!value) fail(value.error().what + (value.error().hint.empty() ? "" : " (" + value.error().hint + ")"));
  return std::move(*value);
}

std::string find_program(const std::string& name) {
  for (const char* directory : {"/usr/local/bin/", "/usr/bin/", "/bin/"})
    if (access((directory + name).c_str(), X_OK) == 0) return directory + name;
  return {};
}

asio::awaitable<void> exec_true(const std::shared_ptr<session>& warm) {
  exec_request request;
  request.argv = {"/usr/bin/true"};
  request.output = output_mode::passed;
  const auto started = need(co_await warm->exec(std::move(request)));
  need(co_await warm->wait(started.exec_id));
}

}  // namespace

int main(int argc, char** argv) {
  set_log_level(log_level::error);
  int rounds = 40;
  std::string srt;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--rounds"))
      rounds = std::atoi(argv[i + 1]);
    else if (!std::strcmp(argv[i], "--srt"))
      srt = argv[i + 1];
    else
      fail(std::string("unknown option ") + argv[i]);
  }

  char scratch[] = "/tmp/ccbox-bench.XXXXXX";
  if (!mkdtemp(scratch) || chdir(scratch) != 0) fail("no scratch directory");
  const auto parts = need(find_installation());
  const auto config = need(load_policy_config(parts.policy));
  const auto plugins =
      need(registry::build(need(load_manifest(parts.manifest, parts.plugin_directory)), CCBOX_PROBE_QUICK));
  sandbox_context context{plugins.get(), &config, gather_host_facts(), parts.init};
  sandbox_spec spec;
  spec.session_id = "bench";
  spec.workspace_id = "bench";
  spec.bind_mounts = {{scratch, scratch, false}};
  const auto prepared = need(prepare(context, spec));
  const std::string ccbox = (std::filesystem::path(parts.init).parent_path() / "ccbox").string();

  std::vector<contender> launch;
  launch.push_back({"posix_spawn true", [] { return run_command({"/usr/bin/true"}); }});
  auto bare = bare_bwrap(prepared.how);
  bare.push_back("/usr/bin/true");
  launch.push_back({"bwrap, same view", [=] { return run_command(bare); }});
  launch.push_back({"ccbox run -- true", [&] { return run_command({ccbox, "run", "--", "/usr/bin/true"}); }});
  launch.push_back({"the same without name rules", [&] {
                      return run_command({ccbox, "run", "--without", "fs_name_deny", "--", "/usr/bin/true"});
                    }});
  if (const auto firejail = find_program("firejail"); !firejail.empty())
    launch.push_back(
        {"firejail", [=] {
           return run_command({firejail, "--quiet", "--noprofile", "--private", "--net=none", "true"});
         }});
  if (!srt.empty()) launch.push_back({"sandbox-runtime (npm)", [=] { return run_command({srt, "true"}); }});
  race(launch, rounds);
  print_table("start a sandbox, run true, end it", launch, 1);

  asio::io_context io;
  event_bus bus;
  std::optional<sandbox_port> port;
  port.emplace(io.get_executor(), context, bus);
  std::shared_ptr<session> warm;
  const auto drive = [&](asio::awaitable<void> work) {
    std::exception_ptr failure;
    bool done = false;
    asio::co_spawn(io, std::move(work), [&](std::exception_ptr e) { failure = e, done = true; });
    io.restart();
    while (!done)
      io.run_one();
    if (failure) std::rethrow_exception(failure);
  };
  const auto launch_warm = [&]() -> asio::awaitable<void> { warm = need(co_await port->launch(spec)); };
  drive(launch_warm());
  std::vector<contender> execs;
  execs.push_back({"posix_spawn true", [] { return run_command({"/usr/bin/true"}); }});
  execs.push_back({"exec in a warm session", [&] { return time_call([&] { drive(exec_true(warm)); }); }});
  race(execs, rounds * 5);
  print_table("a command in a session that runs already", execs, 0);

  const int launcher = std::atoi(warm->handle().details.at("pid").c_str());
  double total = pss_mib(launcher);
  int processes = 1;
  std::ifstream children("/proc/" + std::to_string(launcher) + "/task/" + std::to_string(launcher) +
                         "/children");
  for (int pid = 0; children >> pid; ++processes)
    total += pss_mib(pid);
  std::printf("\nidle session: %d processes, %.2f MiB PSS (targets: 3, 4 MiB)\n", processes, total);

  const auto stop = [&]() -> asio::awaitable<void> { co_await port->shutdown(); };
  drive(stop());
  warm.reset();
  port.reset();
  if (chdir("/") == 0) std::filesystem::remove_all(scratch);
}
