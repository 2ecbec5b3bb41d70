// The HTTP and SOCKS proxies of one session: listeners and the session behind them. Accepts from open() to
// close(); everything it owns is gone a moment after close() (well within 100 ms), the members of the session
// as their coroutines find out.
//
// Made, asked and closed on any thread; lives on its worker's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ccbox/plugin.hpp"
#include "egress_session.hpp"
#include "listener.hpp"

namespace ccbox::egress {

struct listener_request {
  ccbox_listener_kind kind = CCBOX_LISTENER_HTTP;
  int fd = -1;          // the caller's; duplicated
  std::string address;  // where commands find it; empty: the socket's own
};

struct endpoint {
  ccbox_listener_kind kind;
  std::string address;
};

class proxy_pair {
 public:
  // No listeners: two free ports of 127.0.0.1. Throws plugin::failure if one is no listening socket, is
  // neither Unix nor on a loopback address, or has no address to tell.
  proxy_pair(worker& where, common_parts& common, std::shared_ptr<egress_session> session,
             const std::vector<listener_request>& listeners);
  ~proxy_pair();
  proxy_pair(const proxy_pair&) = delete;

  void open();
  // Idempotent; one thread at a time.
  void close();

  const std::vector<endpoint>& endpoints() const { return endpoints_; }
  // The first of a kind that is IPv4, or else the first.
  std::string address_of(ccbox_listener_kind kind) const;
  std::shared_ptr<const egress_policy> policy() const { return policy_; }

 private:
  void add(const listener_request& from);
  void adopt_listener(ccbox_listener_kind kind, int fd, std::string address);

  worker& worker_;
  common_parts& common_;
  std::shared_ptr<egress_session> session_;
  const std::shared_ptr<const egress_policy> policy_;
  std::vector<std::shared_ptr<listener>> listeners_;
  std::vector<own_listeners::entry> own_;
  std::vector<endpoint> endpoints_;
  bool closed_ = false;
};

}  // namespace ccbox::egress
