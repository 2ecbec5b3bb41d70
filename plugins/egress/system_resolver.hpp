// The host's own resolver: getaddrinfo, which blocks, on a few threads of its own.
//
// A lookup that hangs occupies a thread until the C library gives up, at most about 5 s; sessions are kept to
// a share of the threads by their name_cache. The destructor waits half a second for threads that hang and
// then leaves them to end alone, touching nothing but their own state.
#pragma once

#include <functional>
#include <memory>

#include "resolver.hpp"

namespace ccbox::egress {

class system_resolver : public resolver {
 public:
  using blocking_lookup = std::function<lookup_result(const std::string& name)>;
  static constexpr unsigned most_threads = 8;

  // Threads are started when there is something to look up.
  explicit system_resolver(blocking_lookup how = ask_system);
  ~system_resolver() override;
  std::unique_ptr<lookup> resolve(asio::io_context& context, const std::string& name, answer done) override;

  // getaddrinfo. It says no TTL; answers count for 5 s.
  static lookup_result ask_system(const std::string& name);

 private:
  struct shared;
  std::shared_ptr<shared> shared_;
};

}  // namespace ccbox::egress
