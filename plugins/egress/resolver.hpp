// Turns a name into addresses. The interface that the system's resolver, our own DNS client and the tests'
// answers stand behind. It knows no policy: it is asked after policy allowed the name, and policy judges
// every address that it answers.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "address.hpp"
#include "stream.hpp"

namespace ccbox::egress {

struct lookup_result {
  enum class status { found, no_such_name, failed, timed_out };
  status what = status::failed;
  std::vector<ip_address> addresses;  // found: at least one, in the order to try them
  std::chrono::seconds ttl{0};        // found: how long the answer holds
};

// A question under way. Destroying it gives it up: its answer is not delivered.
class lookup {
 public:
  virtual ~lookup() = default;
};

class resolver {
 public:
  using answer = std::function<void(lookup_result)>;
  virtual ~resolver() = default;
  // Called on the thread of `context`, where `done` is called once, after this has returned. Never blocks.
  // No limit of its own that matters: the caller gives up.
  virtual std::unique_ptr<lookup> resolve(asio::io_context& context, const std::string& name,
                                          answer done) = 0;
};

}  // namespace ccbox::egress
