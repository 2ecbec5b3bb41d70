// The network of one session: its proxy pair and, on Linux, the sockets inside the enclosure that lead to it.
//
// With a boundary init makes the listening sockets in the enclosure's namespace, and the pair accepts on them
// (or on the far side of a socat bridge). Without one the pair listens on the host's loopback itself.
//
// Runs on the session's strand, but for close().
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "egress.hpp"
#include "enclosure.hpp"
#include "environment.hpp"
#include "policy.hpp"
#include "socat_bridge.hpp"

namespace ccbox {

class session_proxies {
 public:
  struct source {
    const egress_plugin* plugin = nullptr;  // null: the session has no pair
    std::string net_connect;                // the ProxyCommand helper on the host
  };
  // Before the enclosure's first command. `inside` null: there is no boundary.
  static boost::asio::awaitable<result<std::unique_ptr<session_proxies>>> start(
      boost::asio::any_io_executor strand, source from, const policy& rules, enclosure* inside);
  ~session_proxies();

  // Adds to what a session's commands have, and once more to what one command gets on top of that.
  void add_to(environment& variables) const;
  void append_to(environment& variables, const std::vector<std::pair<std::string, std::string>>& extra) const;
  void describe(std::map<std::string, std::string>& details) const;  // of the handle

  // Nothing is accepted any more when it returns. Idempotent. [any thread]
  void close() noexcept;

 private:
  session_proxies() = default;
  std::unique_ptr<socat_bridge> bridge_;
  std::unique_ptr<egress_pair> pair_;
  std::string network_;
};

}  // namespace ccbox
