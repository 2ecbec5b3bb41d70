// The first dispatch seam: launch → exec → events → destroy. The kernel owns the processes.
//
// Threads: the port may be used from any thread; a session's work runs on its own strand of the executor
// given. The events of the registry's plugins go to the port's sessions; of two ports over one registry
// the younger one gets them.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>
#include <vector>

#include "event_bus.hpp"
#include "prepared_launch.hpp"
#include "session.hpp"

namespace ccbox {

class sandbox_port {
 public:
  sandbox_port(boost::asio::any_io_executor executor, sandbox_context context, event_bus& bus);
  ~sandbox_port();  // ends what is left by force: when it returns, the enclosures are gone
  sandbox_port(const sandbox_port&) = delete;
  sandbox_port& operator=(const sandbox_port&) = delete;

  // Compiles the policy, selects the backend, plans, starts. A refusal is unenforceable or unavailable, with
  // the reason and the remedy, and starts nothing. A session id in use is a conflict. Commands get the
  // session's own environment; with backend `none` they inherit the host's.
  //
  // A start that failed leaves a session in state error under its id, until it is destroyed or launched
  // again.
  boost::asio::awaitable<result<std::shared_ptr<session>>> launch(sandbox_spec spec);
  std::shared_ptr<session> find(const std::string& session_id) const;  // destroyed sessions are forgotten
  std::vector<sandbox_handle> list() const;
  // Destroys every session, all at once, and refuses new ones.
  boost::asio::awaitable<void> shutdown(unsigned grace_ms = 2000);

 private:
  struct impl;
  std::shared_ptr<impl> impl_;
};

}  // namespace ccbox
