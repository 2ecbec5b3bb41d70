// The one way out. Whatever protocol a client speaks, its connection is made here: name to addresses once,
// each address before the policy and our own listeners, then exactly the survivors are dialled. A resolver
// that fails means that nothing is dialled.
//
// The caller has asked policy about the destination before. On one worker's thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "connect_race.hpp"
#include "dial_outcome.hpp"
#include "egress_policy.hpp"
#include "name_cache.hpp"
#include "own_listeners.hpp"
#include "session_settings.hpp"
#include "worker.hpp"

namespace ccbox::egress {

// By which whoever wanted the connection calls it off.
class dial_scope {
 public:
  void cancel() {
    cancelled_ = true;
    if (const auto stop = std::exchange(stop_, nullptr)) stop();
  }
  bool cancelled() const { return cancelled_; }
  void on_cancel(std::function<void()> stop) { stop_ = std::move(stop); }

 private:
  bool cancelled_ = false;
  std::function<void()> stop_;
};

class dialler {
 public:
  virtual ~dialler() = default;
  virtual task<dial_outcome> dial(destination to, std::shared_ptr<dial_scope> scope) = 0;
};

class direct_dialler : public dialler {
 public:
  // All of them outlive it.
  direct_dialler(worker& where, const egress_policy& policy, const own_listeners& own, name_cache& names,
                 const session_settings& settings);
  task<dial_outcome> dial(destination to, std::shared_ptr<dial_scope> scope) override;

 protected:
  struct addresses {
    std::vector<ip_address> permitted;
    dial_failure failure;  // if there are none
  };
  task<addresses> look_up(std::string name, std::shared_ptr<dial_scope> scope);
  // Takes out what may not be dialled.
  addresses judge(const destination& to, const std::vector<ip_address>& all) const;
  task<dial_outcome> race(std::vector<ip_address> to, std::uint16_t port, std::shared_ptr<dial_scope> scope);

  worker& worker_;
  const egress_policy& policy_;
  const own_listeners& own_;
  name_cache& names_;
  const session_settings& settings_;
};

// Through an HTTP proxy of the operator's network, see upstream_proxy.
class upstream_dialler : public direct_dialler {
 public:
  using direct_dialler::direct_dialler;  // `settings.upstream` is set
  task<dial_outcome> dial(destination to, std::shared_ptr<dial_scope> scope) override;

 private:
  task<dial_outcome> ask(std::shared_ptr<stream_socket> proxy, std::string request);
};

}  // namespace ccbox::egress
