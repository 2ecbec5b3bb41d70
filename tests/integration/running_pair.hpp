// A proxy pair on a worker of its own, for the tests of its promises over real loopback sockets.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plugins/egress/dns_resolver.hpp"
#include "plugins/egress/proxy_pair.hpp"
#include "support/dns_responder.hpp"
#include "support/tcp_origin.hpp"
#include "support/tcp_peer.hpp"

namespace ccbox::test {

class running_pair {
 public:
  struct setup {
    std::vector<egress::rule> rules;
    egress::session_settings settings = quick();
    bool with_token = false;
    std::vector<egress::listener_request> listeners = {};  // none: two free ports
    std::string decision_log = {};                         // a file
  };
  // Limits in which nothing that works takes long, and what hangs ends soon.
  static egress::session_settings quick();
  // Names of 127.0.0.1's port that may be reached: an allow rule, and loopback addresses in DNS.
  static setup allowing(const std::vector<std::string>& patterns);

  explicit running_pair(setup with);
  ~running_pair();
  running_pair(const running_pair&) = delete;

  dns_responder& dns() { return dns_; }
  egress::counters& count() { return common_.count; }
  const egress::access_token& token() const { return token_; }
  std::uint16_t http_port() const { return port_of(CCBOX_LISTENER_HTTP); }
  std::uint16_t socks_port() const { return port_of(CCBOX_LISTENER_SOCKS); }
  tcp_peer http() const { return tcp_peer::connect(http_port()); }
  tcp_peer socks() const { return tcp_peer::connect(socks_port()); }
  void close() { pair_->close(); }

  // The denials so far, as JSON; waits until there are that many or 10 s have passed.
  std::vector<std::string> denials(std::size_t at_least);
  // The same of the allowed destinations that were not reached.
  std::vector<std::string> unreachable(std::size_t at_least);
  template <class Condition>
  bool wait_for(Condition reached) {
    std::unique_lock lock(mutex_);
    for (int i = 0; i < 1000; ++i) {
      if (reached()) return true;
      changed_.wait_for(lock, std::chrono::milliseconds(10));
    }
    return false;
  }

  // CONNECT, and the head of the answer.
  static std::string connect(tcp_peer& client, const std::string& authority);

 private:
  std::uint16_t port_of(ccbox_listener_kind kind) const;
  dns_responder dns_;
  egress::dns_resolver resolver_;
  egress::common_parts common_;
  egress::decision_log log_;
  egress::access_token token_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> wait_until(const std::vector<std::string>& events, std::size_t at_least);
  std::vector<std::string> denials_, unreachable_;
  egress::worker worker_;
  std::unique_ptr<egress::proxy_pair> pair_;
};

}  // namespace ccbox::test
