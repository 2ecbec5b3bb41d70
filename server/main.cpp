// cc_server: loads the plugins, probes once, says how dispatch is wrapped, and serves until it is told to
// stop.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "listening_sockets.hpp"
#include "log.hpp"
#include "options.hpp"
#include "service.hpp"
#include "state_directory.hpp"

namespace ccbox::server {

namespace asio = boost::asio;

namespace {

constexpr int exit_refused = 125;
constexpr unsigned session_grace_ms = 5000;
constexpr std::chrono::seconds drain_time{3};  // for answers and events that are on their way

int refuse(const error& e) {
  std::fprintf(stderr, "cc_server: error: %s\n", printable(e.what).c_str());
  if (!e.hint.empty()) std::fprintf(stderr, "cc_server: hint: %s\n", printable(e.hint).c_str());
  return exit_refused;
}

struct opened_sockets {
  std::vector<unique_fd> listening;
  std::string path;  // of the Unix socket that is ours to remove
};

result<opened_sockets> open_sockets(const server_options& options, const state_directory& state) {
  opened_sockets out;
  auto given = sockets_from_systemd();
  if (!given) return given.error();
  out.listening = std::move(*given);
  if (out.listening.empty()) {
    out.path = options.socket.value_or(state.socket());
    auto own = listen_on_unix(out.path);
    if (!own) return own.error();
    out.listening.push_back(std::move(*own));
  }
  if (options.listen) {
    auto tcp = listen_on_loopback(*options.listen);
    if (!tcp) return tcp.error();
    out.listening.push_back(std::move(*tcp));
  }
  for (const auto& each : out.listening)
    if (is_tcp(each.get()) && !options.token_file)
      return error{error_code::invalid_argument, "a TCP socket from systemd, and no --token-file",
                   "name one"};
  return out;
}

// Answers what is under way, ends the sessions, lets their last events go out; everything within bounds.
asio::awaitable<void> stop(http_server& http, sandbox_port& port, asio::any_io_executor front) {
  http.stop_accepting();
  co_await port.shutdown(session_grace_ms);
  asio::steady_timer tick(front);
  const auto end = std::chrono::steady_clock::now() + drain_time;
  while (http.open_connections() > 0 && std::chrono::steady_clock::now() < end) {
    tick.expires_after(std::chrono::milliseconds(20));
    co_await tick.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  http.close_all();
}

int serve(const server_options& options, std::unique_ptr<sandbox_setup> setup, const state_directory& state) {
  access_rules access;
  access.allowed_origins = options.allowed_origins;
  if (options.token_file) {
    auto token = read_token(*options.token_file);
    if (!token) return refuse(token.error());
    access.token = std::move(*token);
  }
  auto sockets = open_sockets(options, state);
  if (!sockets) return refuse(sockets.error());

  const sandbox_status status = status_of(*setup->plugins, options.sandbox);
  log_line(log_level::info, startup_line(status));

  asio::io_context front(1);
  asio::thread_pool pool(std::max(2u, std::thread::hardware_concurrency()));
  {
    event_bus bus;
    sandbox_context context = setup->shared();
    context.lives_long = true;
    sandbox_port port(pool.get_executor(), std::move(context), bus);
    event_journal journal(front.get_executor(), bus);
    router routes;
    const service shared{front.get_executor(), pool.get_executor(), *setup, status, port, journal};
    add_host_routes(routes, shared);
    add_sandbox_routes(routes, shared);
    add_exec_routes(routes, shared);
    add_event_routes(routes, shared);
    http_server http(front.get_executor(), routes, std::move(access));
    for (auto& each : sockets->listening) {
      log_event(log_level::info, "listening", {{"address", address_of(each.get())}});
      if (auto fine = http.serve(std::move(each)); !fine) return refuse(fine.error());
    }
    asio::signal_set signals(front, SIGTERM, SIGINT);
    signals.async_wait([&](boost::system::error_code failed, int number) {
      if (failed) return;
      log_event(log_level::info, "stopping", {{"signal", number}});
      notify_systemd("STOPPING=1");
      signals.async_wait([&](boost::system::error_code again, int) {
        if (!again) front.stop();
      });
      asio::co_spawn(front, stop(http, port, front.get_executor()), [&](std::exception_ptr) {
        signals.cancel();
        front.stop();
      });
    });
    log_event(log_level::info, "serving");
    notify_systemd("READY=1");
    front.run();
  }
  pool.join();
  if (!sockets->path.empty()) ::unlink(sockets->path.c_str());
  log_event(log_level::info, "stopped");
  return 0;
}

int run(const std::vector<std::string>& arguments) {
  const char* variable = std::getenv("CC_SERVER_SANDBOX");
  auto parsed = parse_options(arguments, variable ? std::optional<std::string>(variable) : std::nullopt);
  if (!parsed) return refuse(parsed.error());
  if (parsed->exit_code) return *parsed->exit_code;
  const server_options& options = parsed->options;
  set_log_level(options.level);
  auto state = state_directory::take(options.state_directory.value_or(default_state_directory()));
  if (!state) return refuse(state.error());
  auto setup = load_sandbox_setup(options.files, CCBOX_PROBE_FULL, gather_host_facts());
  if (!setup) return refuse(setup.error());
  return serve(options, std::move(*setup), *state);
}

}  // namespace
}  // namespace ccbox::server

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  try {
    return ccbox::server::run({argv + std::min(argc, 1), argv + argc});
  } catch (const std::exception& e) {
    return ccbox::server::refuse({ccbox::error_code::failed, std::string("internal error: ") + e.what(), ""});
  }
}
