// What was refused, told to whoever started the enclosure: one JSON object a packet.
//
// {"operation": "create", "path": inside, "hostPath", "rule": the glob, "reason", "pid": inside, "program",
//  "errno": "EACCES", "count"}. Bytes that are no UTF-8, and control characters, are written as \xNN.
//
// Nobody has to read it: what does not fit into the socket is counted, and the next packet that fits carries
// the count.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "broker/caller.hpp"
#include "broker_orders.hpp"
#include "descriptor.hpp"

namespace ccbox::bubblewrap {

class denial_report {
 public:
  // A packet socket; not open: nobody wants to know.
  denial_report(descriptor to, std::vector<shown_mount> mounts);

  void tell(const caller& who, const char* operation, const std::string& path, const name_rule& rule);

 private:
  std::string host_path(const std::string& inside) const;

  const descriptor to_;
  const std::vector<shown_mount> mounts_;
  std::uint64_t untold_ = 0;
};

}  // namespace ccbox::bubblewrap
