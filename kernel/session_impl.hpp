// The inside of a session: what session.cpp (its start and its end) and session_commands.cpp share.
//
// Coroutines are static and hold the session by their first argument: they may run when nobody else does, and
// after the port and its bus have gone. All of it runs on the strand, but for what says otherwise.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gate.hpp"
#include "output_pump.hpp"
#include "session.hpp"
#include "session_events.hpp"
#include "session_reports.hpp"

namespace ccbox {

constexpr unsigned output_patience_ms = 100;  // for a background process to close a command's output

// A command of the session, from the request on.
struct command_record {
  explicit command_record(const boost::asio::any_io_executor& strand) : done(strand) {}
  std::uint64_t id = 0;  // 0 until it has started
  std::vector<std::shared_ptr<output_pump>> pumps;
  std::shared_ptr<output_pump> terminal;  // captured pty
  std::optional<result<exit_status>> status;
  gate done;  // its exit was published, or it did not start
};
using record_ptr = std::shared_ptr<command_record>;

struct session::impl : std::enable_shared_from_this<impl> {
  template <class T>
  using awaitable = boost::asio::awaitable<T>;

  impl(boost::asio::any_io_executor s, const event_bus& bus, policy r);

  const boost::asio::any_io_executor strand;
  const policy rules;
  session_events events;
  std::shared_ptr<session_reports> reports;  // set once, by start_reports()
  environment env;

  mutable std::mutex mutex;  // of what other threads read
  sandbox_handle handle;
  std::optional<kill_reason> reason;
  std::shared_ptr<enclosure> inside;
  std::shared_ptr<session_proxies> network;
  mutable bool abandoned = false;
  bool at_rest = false;

  // Only on the strand from here on.
  boost::asio::steady_timer wall_time, patience;
  std::map<std::uint64_t, record_ptr> commands;
  std::deque<std::uint64_t> ended_commands;
  std::set<record_ptr> open_commands;  // not done yet, those about to start too
  std::size_t running = 0;
  bool killed_running = false;  // when the first reason came, something ran
  bool destroying = false, finishing = false;
  gate settled;  // nothing runs any more and the last event was published, or destroy() lost its patience

  sandbox_state state() const;  // [any thread]
  void move_to(sandbox_state to, std::optional<error> failure = {});
  // The first reason to end the session wins; a kill for memory that nobody had noticed yet came before this
  // one.
  void claim(kill_reason r);
  void background(awaitable<void> work);

  static awaitable<void> publish(std::shared_ptr<impl> self, sandbox_event event);
  static awaitable<void> publish_type(std::shared_ptr<impl> self, sandbox_event_type type);
  void start_reports();
  static awaitable<void> publish_report(std::weak_ptr<impl> session, sandbox_event event);

  static awaitable<result<void>> start(std::shared_ptr<impl> self, plan how, environment env,
                                       std::string init_path, session_proxies::source proxies,
                                       const monitor_plugin* monitor);
  static awaitable<result<void>> start_enclosure(std::shared_ptr<impl> self, plan how, std::string init_path);
  static awaitable<result<void>> start_proxies(std::shared_ptr<impl> self, bool unconfined,
                                               session_proxies::source from);
  void end_proxies();
  void rest();
  void drop_enclosure();
  static awaitable<void> shut_down(std::shared_ptr<enclosure> e, unsigned grace_ms);
  void end_for(kill_reason r, unsigned grace_ms);
  // Follows the enclosure's end, whoever brought it about.
  static awaitable<void> watch_end(std::shared_ptr<impl> self);
  bool destroy_requested() const;
  static awaitable<void> destroy(std::shared_ptr<impl> self, unsigned grace_ms);

  // session_commands.cpp
  result<void> accepts_commands() const;
  static awaitable<result<exec_handle>> exec(std::shared_ptr<impl> self, exec_request request);
  static awaitable<result<exec_handle>> start_command(std::shared_ptr<impl> self, record_ptr record,
                                                      exec_request request);
  static awaitable<void> follow_command(std::shared_ptr<impl> self, std::shared_ptr<enclosure> where,
                                        record_ptr record);
  result<std::shared_ptr<output_pump>> start_pump(const record_ptr& record, unique_fd source,
                                                  sandbox_event_type type, bool is_terminal);
  // A pump's sink. The session is there as long as its enclosure is; the pump must not keep it.
  static awaitable<void> publish_output(std::weak_ptr<impl> session, std::uint64_t exec_id,
                                        sandbox_event_type type, bool observed, std::string bytes);
  void remember(const record_ptr& record);
  result<record_ptr> find(std::uint64_t exec_id) const;
  static awaitable<result<exit_status>> wait(std::shared_ptr<impl> self, std::uint64_t exec_id);
  static awaitable<result<void>> signal(std::shared_ptr<impl> self, std::uint64_t exec_id, int number);
  static awaitable<result<void>> resize(std::shared_ptr<impl> self, std::uint64_t exec_id, window_size size);
};

}  // namespace ccbox
