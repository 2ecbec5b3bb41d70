// The contenders of the egress bench, each in processes of its own: what they cost is read off those
// processes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ccbox::bench {

// A listening TCP socket on a free port of 127.0.0.1; exits with a message if there is none.
struct loopback_listener {
  int fd = -1;
  std::uint16_t port = 0;
};
loopback_listener listen_on_loopback();

// What a client has to say before it reaches the origin.
enum class opening { nothing, connect };

struct peer {
  std::string name;
  std::uint16_t port = 0;
  opening tunnels = opening::connect;
  std::optional<std::uint16_t> http_port;  // takes requests in absolute form there
  bool ends_connections = false;           // after each of them, without saying so
  std::size_t most_tunnels = 0;            // that it is asked to hold; 0: it is not asked
  std::vector<pid_t> processes;            // with all that they fork

  // User and system time of its processes until now, those included that have ended and were waited for.
  double cpu_ms() const;
  // The same once it has settled: nothing was added for some milliseconds.
  double settled_cpu_ms() const;
  double pss_kib() const;
};

// A child that runs `work` (which does not return) and dies with this process.
pid_t run_forked(const std::function<void()>& work);
// A program with its output thrown away; an empty `argv[0]` is not a program.
pid_t run_program(const std::vector<std::string>& argv);
void end_process(pid_t pid);

// Waits until something accepts there; exits with a message after 10 s.
void wait_for_port(std::uint16_t port, const std::string& name);

// Configured to relay to `origin_port` of 127.0.0.1 and ready; nothing if it is not installed. Files of
// theirs are made below `scratch`.
std::optional<peer> start_squid(const std::string& scratch);
std::optional<peer> start_tinyproxy(const std::string& scratch);
// It knows no CONNECT: a TCP relay to the origin, and an HTTP reverse proxy on another port.
std::optional<peer> start_haproxy(const std::string& scratch, std::uint16_t origin_port);
// TCP to the Unix socket at `path`, one process a connection: the bridge of a session's network namespace.
std::optional<peer> start_socat(const std::string& path);

}  // namespace ccbox::bench
