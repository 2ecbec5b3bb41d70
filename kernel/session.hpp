// A launched sandbox: handle, state, commands, limits and events. Made by sandbox_port.
//
// Every coroutine here runs on the session's strand whatever executor calls it. Events go to the bus in
// order: starting, (violation | unreachable)*, ready, (stdout | stderr | exit | violation | unreachable)*,
// killed?.
//
//  - A command's exit comes after all the output that it left. A background process that keeps the output
//    open delays it by a tenth of a second at most; what that process writes later still comes, under the
//    same exec id.
//  - The limits end the session, not one command: killed{timeout} after the wall time, killed{oom} at the
//    latest when a command ends after the kernel killed any process of the session for memory. The first
//    reason wins.
//  - An enclosure that ends without being told to (its launcher is killed) puts the session into state error.
//    Commands that were running then report exit 137, because the end of the enclosure killed them.
//  - Its proxy pair, if it has one, accepts before the first command starts and is closed when the enclosure
//    has ended. A proxy that refuses a connection is a violation event, one that cannot make it an
//    unreachable event.
//  - Where there is a monitor plugin, it says which refused actions are violation events. It also sees what
//    commands write to captured standard errors and terminals, unless there is no boundary: then whatever is
//    refused is refused by the host.
//
// Dropping the last reference ends the enclosure by force.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "enclosure.hpp"
#include "environment.hpp"
#include "event_bus.hpp"
#include "monitor.hpp"
#include "policy.hpp"
#include "sandbox_handle.hpp"
#include "session_proxies.hpp"

namespace ccbox {

enum class output_mode {
  passed,    // the command's descriptors are the caller's; nothing is copied
  captured,  // stdout and stderr (or the pty) are pumped into events; back-pressure reaches the command
};

struct exec_request {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> extra_env;  // on top of the session's
  std::string cwd;                                             // inside; empty: the session's workdir
  std::array<unique_fd, 3> descriptors;  // as they are: a file can be opened anew, a terminal be steered
  std::optional<window_size> pty;
  output_mode output = output_mode::captured;
};

struct exec_handle {
  std::uint64_t exec_id = 0;
  int pid_inside = 0;
  unique_fd pty_master;  // output_mode::passed with a pty: the caller relays
};

class session : public std::enable_shared_from_this<session> {
 public:
  ~session();
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  sandbox_handle handle() const;  // a copy; [any thread]
  const policy& rules() const;

  boost::asio::awaitable<result<exec_handle>> exec(exec_request request);
  // After its exit was published. The last 1000 ended commands are remembered. A command that a limit or
  // destroy() killed has status SIGKILL or whatever it made of the warning; `unavailable` if the enclosure
  // was lost.
  boost::asio::awaitable<result<exit_status>> wait(std::uint64_t exec_id);
  boost::asio::awaitable<result<void>> signal(std::uint64_t exec_id, int number);
  // Of a captured pty. One that was passed is the caller's own to resize: illegal_state.
  boost::asio::awaitable<result<void>> resize(std::uint64_t exec_id, window_size size);
  // Ends the enclosure, publishes killed{manual} if commands were running, state destroyed. Asked for again,
  // the grace that ends first counts. Waits for slow subscribers for some seconds only.
  boost::asio::awaitable<void> destroy(unsigned grace_ms = 2000);
  // What a command wrote to a pty that was passed to the caller: the monitor may find in it what nobody else
  // reports. [any thread]
  void observe(std::uint64_t exec_id, std::string_view bytes);
  // Why it ended, if it was killed: oom, timeout, manual. [any thread]
  std::optional<kill_reason> killed() const;

 private:
  friend class sandbox_port;
  struct impl;

  // State created; starts nothing. `strand` is the session's own.
  session(boost::asio::any_io_executor strand, event_bus& bus, policy rules);
  // Starts the enclosure and the pair: state warm, or state error and nothing running. `monitor` null: every
  // denial is a violation event as it comes.
  boost::asio::awaitable<result<void>> start(plan how, environment env, std::string init_path,
                                             session_proxies::source proxies, const monitor_plugin* monitor);
  // An event that a plugin has for this session: "denial", "unreachable" (docs/abi.md) or "violation". Never
  // waits: too many that nobody has taken yet are counted, logged and dropped. [any thread]
  ccbox_status report(std::string_view type, std::string_view json);
  // Kills the enclosure and waits a little for it to be gone; its end counts as destroy(). [any thread]
  void abandon() const noexcept;
  // It has ended, or failed to start, and published its last event; or destroy() is through with it. [any
  // thread]
  bool at_rest() const;

  std::shared_ptr<impl> impl_;  // its coroutines hold it too
};

}  // namespace ccbox
