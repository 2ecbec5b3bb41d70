// How an attempt to reach a destination ended, and what each protocol tells the client about it.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "egress_policy.hpp"
#include "socks.hpp"
#include "stream.hpp"

namespace ccbox::egress {

struct dialled {
  stream_socket socket;
  std::string early;  // bytes of the origin that came with an upstream proxy's answer
};

struct dial_failure {
  enum class kind {
    refused_by_policy,  // no address that the name resolved to may be dialled; `by` says why
    no_such_name,
    lookup_failed,
    lookup_timed_out,
    connection_refused,
    host_unreachable,
    network_unreachable,
    timed_out,
    upstream_failed,   // the upstream proxy cannot be reached or spoke no HTTP
    upstream_refused,  // it answered with something else than 200
    no_resources,      // this process has no descriptors or memory left
    failed,
    cancelled,  // the client or the session went away
  };
  kind what = kind::failed;
  decision by;

  // For X-Proxy-Error, logs and counters: "dns-timeout", "connection-refused", …
  std::string_view word() const;
  // For people, as in "a.test:443 …".
  std::string_view text() const;
  unsigned http_status() const;  // 403, 502, 503 or 504
  socks_reply reply() const;
};

using dial_outcome = std::variant<dialled, dial_failure>;

dial_failure::kind failure_of_errno(int code);

}  // namespace ccbox::egress
