// This build's plugins, policy and host facts as a caller of the port has them, and specs that they accept.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "event_bus.hpp"
#include "policy_config.hpp"
#include "registry.hpp"
#include "sandbox_port.hpp"
#include "sandbox_spec.hpp"

namespace ccbox::test {

class booted {
 public:
  // With the shipped manifest, or with `manifest_text` in its place. Fails the test if it does not boot.
  explicit booted(const std::string& manifest_text = {});
  const sandbox_context& context() const { return context_; }
  sandbox_context& context() { return context_; }
  egress_config& egress() { return egress_; }

 private:
  std::unique_ptr<registry> plugins_;
  policy_config config_;
  egress_config egress_;
  sandbox_context context_;
};

// The shipped manifest, booted once for all tests of this process.
booted& shared_boot();

// `directory` is bound writable and the working directory. What this version cannot enforce is given up by
// name.
sandbox_spec spec_for(const std::string& session_id, const std::string& backend,
                      const std::string& directory);

// All events of a bus. Everything may be called on any thread but the subscriber's.
class recorder {
 public:
  recorder(event_bus& bus, boost::asio::any_io_executor executor, const std::string& session_id = {});
  std::vector<sandbox_event> events() const;
  // Their types and what they carry, on one line: "starting ready stdout(1)='x' exit(1)=0 killed=manual".
  // Neighbouring output of one stream counts as one event.
  std::string text() const;
  std::string output(std::uint64_t exec_id, sandbox_event_type type = sandbox_event_type::stdout_data) const;
  std::size_t count(sandbox_event_type type) const;
  event_bus::subscription& subscription() { return subscription_; }

 private:
  struct state {
    mutable std::mutex mutex;
    std::vector<sandbox_event> events;
  };
  static boost::asio::awaitable<void> keep(std::shared_ptr<state> s, sandbox_event event);
  std::shared_ptr<state> state_ = std::make_shared<state>();
  event_bus::subscription subscription_;
};

}  // namespace ccbox::test
