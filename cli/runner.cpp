#include "runner.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <exception>
#include <optional>

#include "descriptor_relay.hpp"
#include "event_bus.hpp"
#include "limits.hpp"
#include "line_writer.hpp"
#include "log.hpp"
#include "output.hpp"
#include "sandbox_port.hpp"
#include "session.hpp"
#include "terminal_relay.hpp"
#include "violation_report.hpp"

namespace ccbox {

namespace asio = boost::asio;
namespace json = boost::json;

namespace {

constexpr std::chrono::milliseconds signal_grace{2000};

bool is_ignored(int number) {
  struct sigaction action {};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// What a person is told about a launch that runs with less than the policy asks for.
std::vector<std::string> warnings_of(const session& live) {
  std::vector<std::string> out = live.rules().warnings;
  const bool asked_for_none = live.rules().backend_request == "none";  // the policy says it then
  if (live.handle().backend == sandbox_backend::none && !asked_for_none) {
    out.insert(out.begin(),
               "RUNNING UNCONFINED: backend none isolates nothing; the command has your files, network "
               "and processes");
  }
  const auto details = live.handle().details;
  if (const auto memory = details.find("limits.memory");
      memory != details.end() && memory->second == memory_by_process) {
    out.emplace_back(memory_by_process_warning);
  }
  return out;
}

// A session whose proxies could not be loaded reaches nothing; whoever wrote the manifest did not mean that.
std::vector<std::string> warnings_of_proxies(const registry& plugins, const resolved_egress& wanted) {
  std::vector<std::string> out;
  if (!wanted.proxied || !wanted.network_allowed || plugins.find_egress()) return out;
  for (const plugin_status& status : plugins.statuses()) {
    if (!status.failure || status.probe) continue;
    out.push_back("no egress plugin is loaded, so nothing is reachable; " + quoted(status.path) +
                  " was skipped: " + status.failure->what);
  }
  return out;
}

const std::vector<egress_rule> no_rules;

// Refusals are told of without a monitor, too, but not as the manifest has it.
std::vector<std::string> warnings_of_monitor(const registry& plugins) {
  std::vector<std::string> out;
  if (plugins.find_monitor() || !plugins.find_egress()) return out;  // that one has a warning already
  for (const plugin_status& status : plugins.statuses()) {
    if (!status.failure || status.probe) continue;
    out.push_back("no monitor of violations is loaded; " + quoted(status.path) + " was skipped: " +
                  status.failure->what + (status.failure->hint.empty() ? "" : "; " + status.failure->hint));
  }
  return out;
}

class runner {
 public:
  runner(const sandbox_setup& context, run_request request)
      : context_(context),
        request_(std::move(request)),
        signals_(io_),
        grace_(io_),
        lines_(io_.get_executor(), STDOUT_FILENO, [this] { return is_ending(); }),
        messages_(io_.get_executor(), STDERR_FILENO, [this] { return is_ending(); }),
        report_(request_.violations, request_.spec.network_enabled && request_.spec.capabilities.network) {
    // Whoever made this process ignore a signal (nohup, a background job of a script) meant the command too.
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP}) {
      if (!is_ignored(number)) signals_.add(number);
    }
    signals_.add(SIGCONT);
    signals_.add(SIGWINCH);
  }

  int run() {
    sandbox_context shared = context_.shared();
    shared.monitored = wants_events();
    sandbox_port port(io_.get_executor(), std::move(shared), bus_);
    in_background(watch_signals());
    asio::co_spawn(io_, run_to_last_line(port), [this](std::exception_ptr failure, int code) {
      exit_code_ = failure ? exit_refused : code;
      signals_.cancel();
      grace_.cancel();
      io_.stop();
      if (failure) std::rethrow_exception(failure);
    });
    io_.run();
    relay_.reset();
    stream_relays_ = {};
    return exit_code_;
  }

 private:
  bool wants_events() const { return request_.json || request_.violations != violations_mode::none; }

  asio::awaitable<int> run_to_last_line(sandbox_port& port) {
    const int code = co_await whole_run(port);
    finishing_ = true;
    co_await flush_lines();
    co_await messages_.flush();
    if (output_lost_) co_return exit_refused;
    co_return stop_signal_ ? exit_signal_base + stop_signal_ : code;
  }

  asio::awaitable<int> whole_run(sandbox_port& port) {
    if (wants_events()) subscribe();
    auto launched = co_await port.launch(request_.spec);
    if (!launched) co_return refuse(request_.origins.translated(launched.error()));
    session_ = *launched;
    if (request_.json) announce_handle();
    if (!request_.quiet && !request_.json) {
      for (const std::string& warning : warnings_of(*session_))
        messages_.add(warning_line(warning));
      for (const std::string& warning : warnings_of_proxies(*context_.plugins, session_->rules().egress))
        messages_.add(warning_line(warning));
      for (const std::string& warning : warnings_of_monitor(*context_.plugins))
        messages_.add(warning_line(warning));
      co_await messages_.flush();
    }
    const int code = stop_signal_ ? exit_signal_base + stop_signal_ : co_await run_command();
    co_await session_->destroy(0);
    finishing_ = true;
    if (is_ending()) in_background(abandon_relays_in_time());
    if (relay_) co_await relay_->finish();
    // Standard input last: an output may share its position.
    for (const std::size_t fd : {1, 2, 0})
      if (const auto& relay = stream_relays_[fd]) co_await relay->finish();
    if (wants_events()) co_await subscription_.drained();
    messages_.add(report_.summary(session_->rules().egress.rules));
    if (stop_signal_) co_return exit_signal_base + stop_signal_;
    for (const auto& relay : stream_relays_)
      if (relay && relay->failure()) co_return refuse(*relay->failure());
    co_return code;
  }

  asio::awaitable<int> run_command() {
    exec_request how;
    how.argv = request_.command;
    how.extra_env = request_.env;
    how.output = request_.json ? output_mode::captured : output_mode::passed;
    if (auto ok = choose_descriptors(how); !ok) co_return refuse(ok.error());
    auto started = co_await session_->exec(std::move(how));
    if (!started) {
      refuse(hinting_at_view(started.error()));
      co_return started.error().code == error_code::not_found ? exit_not_found
      : started.error().code == error_code::permission_denied ? exit_not_executable
                                                              : exit_refused;
    }
    exec_id_ = started->exec_id;
    for (const auto& relay : stream_relays_)
      if (relay) relay->start();
    if (relay_ && started->pty_master) {
      const auto seen = [this](std::string_view bytes) { session_->observe(exec_id_, bytes); };
      relay_->start(std::move(started->pty_master), seen);
    }
    for (const int number : std::exchange(early_signals_, {}))
      co_await session_->signal(exec_id_, number);
    if (stop_signal_) co_await pass_stop_signal();
    auto ended = co_await session_->wait(exec_id_);
    const auto killed = session_->killed();
    if (killed && *killed != kill_reason::manual) {
      tell_limit(*killed);
      co_return exit_signal_base + SIGKILL;
    }
    if (ended) tell_file_size(ended->code());
    if (ended) co_return ended->code();
    if (!stop_signal_) refuse(ended.error());
    co_return exit_signal_base + SIGKILL;
  }

  // Programs are looked up inside, where most of the host is not.
  error hinting_at_view(error e) const {
    if (!e.hint.empty()) return e;
    if (e.code == error_code::not_found) {
      e.hint = request_.command[0].find('/') == std::string::npos
                   ? "no directory of PATH inside has it; `ccbox explain` lists what is there"
                   : "it, or the interpreter in its first line, is not inside; `ccbox explain` lists what is "
                     "there";
    } else if (e.code == error_code::permission_denied) {
      e.hint = "it must be a file that this user may execute: chmod +x, or name its interpreter";
    }
    return e;
  }

  // A descriptor that is a terminal comes from the pty inside, or is relayed.
  result<void> choose_descriptors(exec_request& how) {
    std::array<bool, 3> from_pty{};
    if (request_.json) {
      from_pty = {false, true, true};
      if (request_.pty == run_request::pty_use::always) how.pty = window_size{};
    } else if (request_.pty != run_request::pty_use::never) {
      from_pty = standard_terminals();
      const bool any = from_pty[0] || from_pty[1] || from_pty[2];
      if (!any && request_.pty == run_request::pty_use::always) {
        return error{error_code::invalid_argument, "--pty always, but no standard descriptor is a terminal",
                     "run it in a terminal, or with --json, which captures the pty"};
      }
      if (any) {
        auto relay = terminal_relay::open(io_.get_executor(), from_pty);
        if (!relay) return relay.error();
        relay_ = std::move(*relay);
        how.pty = relay_->size();
      }
    }
    for (std::size_t fd = 0; fd < how.descriptors.size(); ++fd) {
      if (from_pty[fd]) continue;
      if (auto ok = hand_over_descriptor(static_cast<int>(fd), how.descriptors[fd]); !ok) return ok;
    }
    return {};
  }

  result<void> hand_over_descriptor(int fd, unique_fd& to_command) {
    // Without a boundary there is nothing to keep from the command.
    const bool enclosed = session_->handle().backend != sandbox_backend::none;
    switch (enclosed ? how_to_hand_over(fd) : hand_over::as_it_is) {
      case hand_over::null:
        return {};
      case hand_over::as_it_is:
        to_command = unique_fd(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
        return to_command ? result<void>{} : result<void>(system_error("fcntl", "", errno));
      case hand_over::refused:
        return error{
            error_code::invalid_argument,
            "descriptor " + std::to_string(fd) + " is neither a stream nor something to copy from or to",
            "hand in a pipe, a file, a terminal or a connected Unix socket"};
      case hand_over::relayed:
        break;
    }
    // What goes to one file through both outputs must stay in order.
    const bool shared = fd == 2 && stream_relays_[1] && is_same_file(1, 2);
    auto& relay = stream_relays_[static_cast<std::size_t>(shared ? 1 : fd)];
    if (!shared) {
      auto opened = descriptor_relay::open(io_.get_executor(), fd, request_.spec.limits.file_size_bytes);
      if (!opened) return opened.error();
      relay = std::move(*opened);
    }
    auto end = relay->command_end();
    if (!end) return end.error();
    to_command = std::move(*end);
    return {};
  }

  asio::awaitable<void> watch_signals() {
    for (;;) {
      auto [ec, number] = co_await signals_.async_wait(asio::as_tuple(asio::use_awaitable));
      if (ec) co_return;
      switch (number) {
        case SIGWINCH:
          if (relay_) relay_->resized();
          break;
        case SIGCONT:
          if (session_ && exec_id_) co_await session_->signal(exec_id_, SIGCONT);
          if (relay_) relay_->resume();
          break;
        case SIGTSTP:
          co_await stop_with_command();
          break;
        case SIGUSR1:
        case SIGUSR2:
          if (exec_id_)
            co_await session_->signal(exec_id_, number);
          else
            early_signals_.push_back(number);
          break;
        default:
          co_await end_command(number);
      }
    }
  }

  // The command's group has no parent in its session, so that the kernel drops SIGTSTP for it: SIGSTOP does
  // it.
  asio::awaitable<void> stop_with_command() {
    if (session_ && exec_id_) co_await session_->signal(exec_id_, SIGSTOP);
    if (relay_) relay_->pause();
    ::kill(::getpid(), SIGSTOP);
  }

  // The first signal goes to the command, which then has a grace; the second ends everything at once.
  asio::awaitable<void> end_command(int number) {
    if (finishing_) abandon_relays();
    if (finishing_ || stop_signal_) {
      lines_.give_up();
      messages_.give_up();
    }
    if (stop_signal_) {
      // Before there is a session only the launch is running: it dies with this process.
      if (!session_) ::_exit(exit_signal_base + stop_signal_);
      co_await session_->destroy(0);
      co_return;
    }
    stop_signal_ = number;
    // The command may run although nobody has told us its number yet: run_command() then passes the signal
    // on.
    if (exec_id_) co_await pass_stop_signal();
  }

  asio::awaitable<void> pass_stop_signal() {
    in_background(kill_after_grace());
    co_await session_->signal(exec_id_, stop_signal_);
  }

  void abandon_relays() {
    if (relay_) relay_->abandon();
    for (const auto& relay : stream_relays_)
      if (relay) relay->abandon();
  }

  asio::awaitable<void> abandon_relays_in_time() {
    asio::steady_timer patience(io_, line_writer::patience);
    boost::system::error_code ignored;
    co_await patience.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    abandon_relays();
  }

  bool is_ending() const { return stop_signal_ != 0 || output_lost_ || (session_ && session_->killed()); }

  void in_background(asio::awaitable<void> work) {
    asio::co_spawn(io_, std::move(work), [](std::exception_ptr failure) {
      if (failure) std::rethrow_exception(failure);
    });
  }

  asio::awaitable<void> kill_after_grace() {
    grace_.expires_after(signal_grace);
    boost::system::error_code ec;
    co_await grace_.async_wait(asio::redirect_error(asio::use_awaitable, ec));
    if (!ec) co_await session_->destroy(0);
  }

  void subscribe() {
    subscription_ = bus_.subscribe(io_.get_executor(), request_.spec.session_id,
                                   [this](sandbox_event event) { return take_event(std::move(event)); });
  }

  asio::awaitable<void> take_event(sandbox_event event) {
    const auto lines = report_.take(event, session_ ? session_->rules().egress.rules : no_rules);
    if (!lines.empty()) {
      messages_.add(relay_ ? with_returns(lines) : lines);
      co_await messages_.flush();
    }
    if (request_.json) {
      print_line(to_json(event));
      co_await flush_lines();
    }
  }

  // While the command's terminal is the caller's, a line begins where the cursor is and ends without a
  // return.
  static std::string with_returns(const std::string& lines) {
    std::string text = "\r";
    for (const char c : lines)
      text += c == '\n' ? "\r\n" : std::string(1, c);
    return text;
  }

  // What was published while the launch went on waits for the handle.
  void print_line(const json::value& value) { write_line(json::serialize(value) + "\n"); }

  void write_line(const std::string& line) {
    if (!handle_printed_)
      held_back_ += line;
    else
      lines_.add(line);
  }

  asio::awaitable<void> flush_lines() {
    co_await lines_.flush();
    if ((lines_.failure() == 0 && !lines_.dropped()) || !std::exchange(reader_is_there_, false)) co_return;
    if (lines_.dropped()) {
      messages_.add(error_text(abandoned_output()));
      co_return;
    }
    // A reader that has gone away ends the command as it would without ccbox in between.
    const bool gone = lines_.failure() == EPIPE;
    if (!gone) {
      messages_.add(error_text(lost_output(lines_.failure())));
      output_lost_ = true;
    }
    if (finishing_ && gone && !stop_signal_) stop_signal_ = SIGPIPE;
    if (!finishing_) in_background(end_command(SIGPIPE));
  }

  void announce_handle() {
    std::string held = std::exchange(held_back_, {});
    handle_printed_ = true;
    print_line(json::object{{"type", "handle"}, {"handle", to_json(session_->handle())}});
    lines_.add(held);
    in_background(flush_lines());
  }

  int refuse(const error& e) {
    if (request_.json) {
      handle_printed_ = true;
      write_line(json_error_line(e));
    }
    messages_.add(error_text(e));
    return exit_refused;
  }

  void tell_limit(kill_reason reason) {
    const std::string limit = reason == kill_reason::timeout
                                  ? "it ran longer than the wall time of " +
                                        std::to_string(request_.spec.limits.wall_time_ms.value_or(0)) + " ms"
                                  : "it used more than the memory limit of " +
                                        std::to_string(request_.spec.limits.memory_bytes.value_or(0)) +
                                        " bytes";
    messages_.add("ccbox: killed: " + std::string(to_string(reason)) + ": " + limit + "\n");
  }

  // Shells pass on what ended their command.
  void tell_file_size(int code) {
    const auto& most = session_->rules().spec.limits.file_size_bytes;
    if (code != exit_signal_base + SIGXFSZ || !most || request_.quiet) return;
    messages_.add("ccbox: exit code " + std::to_string(code) +
                  " is that of SIGXFSZ: it ends a program that writes a file beyond the limit of " +
                  std::to_string(*most) + " bytes (--file-size)\n");
  }

  const sandbox_setup& context_;
  run_request request_;
  asio::io_context io_{1};
  asio::signal_set signals_;
  asio::steady_timer grace_;
  line_writer lines_;     // of --json
  line_writer messages_;  // for people, on standard error
  event_bus bus_;
  event_bus::subscription subscription_;
  std::shared_ptr<session> session_;
  std::unique_ptr<terminal_relay> relay_;
  std::array<std::unique_ptr<descriptor_relay>, 3> stream_relays_;
  std::uint64_t exec_id_ = 0;
  int stop_signal_ = 0;
  std::vector<int> early_signals_;  // for the command, before its number was known
  int exit_code_ = exit_refused;
  bool finishing_ = false;
  bool handle_printed_ = false;
  bool reader_is_there_ = true;
  bool output_lost_ = false;  // the events could not be written
  std::string held_back_;
  violation_report report_;
};

}  // namespace

int run_in_enclosure(const sandbox_setup& context, run_request request) {
  return runner(context, std::move(request)).run();
}

}  // namespace ccbox
