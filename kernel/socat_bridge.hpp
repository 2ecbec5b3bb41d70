// The other way from an enclosure's loopback to its proxies: each connection is handed to a socat process,
// which passes it on to a Unix socket that the proxies accept on.
//
// Sockets are accepted here and socat runs outside, in no namespace of the session: commands inside may not
// open Unix sockets, and a helper in there that may would be theirs to take over (docs/decisions/0011). The
// Unix sockets are bound in a private directory (0700) that is gone again when start() returns: socat reaches
// them through descriptors, so nothing is left behind whoever is killed.
//
// socat dies with the thread that started it. Runs on one strand; destroying it kills every socat.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <string>
#include <vector>

#include "egress.hpp"
#include "result.hpp"

namespace ccbox {

class socat_bridge {
 public:
  // `sockets` listen; they are duplicated. unavailable: socat is not installed.
  static result<std::unique_ptr<socat_bridge>> start(boost::asio::any_io_executor strand,
                                                     const std::vector<egress_listener>& sockets);
  ~socat_bridge();
  socat_bridge(const socat_bridge&) = delete;
  socat_bridge& operator=(const socat_bridge&) = delete;

  // What the proxies accept on instead: Unix sockets with the addresses of those given. Borrowed from here.
  const std::vector<egress_listener>& listeners() const;

 private:
  socat_bridge();
  struct impl;
  std::shared_ptr<impl> impl_;  // its coroutines hold it too
};

// The program, or empty.
std::string find_socat();

}  // namespace ccbox
