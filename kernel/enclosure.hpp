// A started plan: one launcher process, ccbox-init inside it, and the channel between. Mechanism only:
// states, events and time limits are the session's.
//
// Runs on one strand (its executor); nothing here is thread-safe beyond that, but kill(). It ends with this
// process, not with the thread that started it: its launcher outlives that (docs/decisions/0008).
//
// A plan with very many paths raises this process's soft limit of open files.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "command.hpp"
#include "limits.hpp"
#include "loopback_listener.hpp"
#include "plan.hpp"
#include "process.hpp"
#include "result.hpp"
#include "unique_fd.hpp"

namespace ccbox {

struct started_command {
  std::uint64_t id = 0;
  int pid_inside = 0;
  unique_fd pty_master;  // if a pty was asked for
};

class enclosure {
 public:
  // Spawns the launcher and completes the handshake (within `timeout_ms`). An error carries what the launcher
  // wrote to its standard error; nothing is left running.
  // `denied` gets each denial that the plan's process tells of (bytes from it, to be checked), on the strand.
  static boost::asio::awaitable<result<std::unique_ptr<enclosure>>> start(
      boost::asio::any_io_executor strand, plan p, std::string init_path, limit_group limits,
      unsigned timeout_ms = 10000, std::function<void(std::string_view json)> denied = nullptr);
  ~enclosure();  // kills and reaps

  // Has init make listening sockets in the namespace, each on a port of the system's choice. Once, before the
  // first exec, and only with a boundary: without one it is illegal_state.
  boost::asio::awaitable<result<std::vector<loopback_listener>>> listen(unsigned count);

  // Errors: code not_found (exit code 127) or permission_denied (126) for exec failures, invalid_argument for
  // cwd and malformed strings, too_large for argv and env, unavailable once the enclosure has ended.
  boost::asio::awaitable<result<started_command>> exec(command c);
  // Once per started command. `unavailable` if the enclosure died first.
  boost::asio::awaitable<result<exit_status>> wait(std::uint64_t id);
  boost::asio::awaitable<result<void>> signal(std::uint64_t id, int number);  // to its process group

  // Ends everything inside: TERM, `grace_ms`, KILL. Returns when the launcher is reaped. Asked
  // for again, the grace that ends first counts.
  boost::asio::awaitable<void> shutdown(unsigned grace_ms);
  // Resumes when the enclosure has ended, for whatever reason.
  boost::asio::awaitable<void> ended();
  // One line once it has ended, e.g. "the launcher was killed by signal 9".
  std::string why_ended() const;
  // Ends it by force and waits `limit_ms` at most for the launcher to be gone. [any thread]
  void kill(unsigned limit_ms) const noexcept;

  pid_t launcher_pid() const;
  bool alive() const;
  const limit_group& limits() const;

 private:
  enclosure();
  struct impl;
  std::shared_ptr<impl> impl_;  // its coroutines hold it too
};

}  // namespace ccbox
