// The egress plugin in a process of its own, driven through its C tables as the server does it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace ccbox::bench {

class hosted_pairs {
 public:
  // Loads the plugin file; `origin_port` of 127.0.0.1 is what its sessions may reach. Exits with a message if
  // the plugin refuses.
  hosted_pairs(const std::string& plugin_file, std::uint16_t origin_port);
  ~hosted_pairs();
  hosted_pairs(const hosted_pairs&) = delete;

  pid_t pid() const { return pid_; }
  // One more session, with the limits of a default configuration but room for thousands of tunnels. Returns
  // its HTTP port; with `unix_listener` it listens there instead.
  std::uint16_t open(int unix_listener = -1);

 private:
  [[noreturn]] void serve(int channel, const std::string& plugin_file, std::uint16_t origin_port);
  pid_t pid_ = -1;
  int channel_ = -1;
};

}  // namespace ccbox::bench
