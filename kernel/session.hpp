// A launched sandbox: handle, state, commands, limits and events. Made by sandbox_port.
//
// Every coroutine here runs on the session's strand whatever executor calls it. Events go to the bus in order:
// starting, ready, (stdout | stderr | exit | violation)*, killed?.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "enclosure.hpp"
#include "event_bus.hpp"
#include "policy.hpp"
#include "sandbox_handle.hpp"

namespace ccbox {

enum class output_mode {
  passed,    // the command's descriptors are the caller's; nothing is copied
  captured,  // stdout and stderr (or the pty) are pumped into events; back-pressure reaches the command
};

struct exec_request {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> extra_env;  // on top of the session's
  std::string cwd;  // inside; empty: the session's workdir
  std::array<unique_fd, 3> descriptors;
  std::optional<window_size> pty;
  output_mode output = output_mode::captured;
};

struct exec_handle {
  std::uint64_t exec_id = 0;
  int pid_inside = 0;
  unique_fd pty_master;   // output_mode::passed with a pty: the caller relays
};

class session : public std::enable_shared_from_this<session> {
 public:
  sandbox_handle handle() const;  // a copy; [any thread]
  const policy& rules() const;

  boost::asio::awaitable<result<exec_handle>> exec(exec_request request);
  boost::asio::awaitable<result<exit_status>> wait(std::uint64_t exec_id);  // after all its output was published
  boost::asio::awaitable<result<void>> signal(std::uint64_t exec_id, int number);
  boost::asio::awaitable<result<void>> resize(std::uint64_t exec_id, window_size size);
  // Idempotent: publishes killed{manual} if commands were running, ends the enclosure, state destroyed.
  boost::asio::awaitable<void> destroy(unsigned grace_ms = 2000);
  // Why it ended, if it was killed: oom, timeout, manual.
  std::optional<kill_reason> killed() const;

 private:
  friend class sandbox_port;
  session();
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace ccbox
