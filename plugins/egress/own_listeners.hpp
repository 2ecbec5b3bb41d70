// Where the pairs of this process listen, of all sessions: addresses that no session may dial, whatever its
// rules say. Listeners in another network namespace cannot be reached from here and are not among them.
//
// Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <shared_mutex>

#include "address.hpp"

namespace ccbox::egress {

class own_listeners {
 public:
  // Adds the address of a listening TCP socket while it lives.
  class entry {
   public:
    entry() = default;
    entry(own_listeners& all, int listening_fd);
    entry(entry&& other) noexcept;
    entry& operator=(entry&& other) noexcept;
    ~entry();

   private:
    own_listeners* all_ = nullptr;
    std::uint16_t port_ = 0;
    ip_address address_;
  };

  // Would a connection to it reach one of them? 0.0.0.0 and :: reach this host.
  bool contains(const ip_address& address, std::uint16_t port) const;

 private:
  mutable std::shared_mutex mutex_;
  std::multimap<std::uint16_t, ip_address> addresses_;
};

}  // namespace ccbox::egress
