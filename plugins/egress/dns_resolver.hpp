// Our own DNS client, for `resolver: ip:port`: asks one server for A and AAAA at once, over UDP with repeats
// and over TCP when an answer was cut. No search list, no hosts file, no threads; a lookup that is given up
// leaves nothing behind.
//
// Every question has its own random id and its own connected socket; answers of others are ignored. One
// family without an answer does not spoil the other's.
#pragma once

#include <chrono>

#include "resolver.hpp"

namespace ccbox::egress {

class dns_resolver : public resolver {
 public:
  struct server {
    ip_address address;
    std::uint16_t port = 53;
  };
  // Asked again after `patience`, then after twice that, and so on; `attempts` in all.
  explicit dns_resolver(server where, std::chrono::milliseconds patience = std::chrono::milliseconds(1000),
                        unsigned attempts = 3)
      : server_(where), patience_(patience), attempts_(attempts) {}
  std::unique_ptr<lookup> resolve(asio::io_context& context, const std::string& name, answer done) override;

 private:
  const server server_;
  const std::chrono::milliseconds patience_;
  const unsigned attempts_;
};

}  // namespace ccbox::egress
