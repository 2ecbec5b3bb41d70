#include "dial_outcome.hpp"

#include <array>
#include <cerrno>

namespace ccbox::egress {
namespace {

struct wording {
  dial_failure::kind what;
  std::string_view word, text;
  unsigned status;
  socks_reply reply;
};

using kind = dial_failure::kind;
constexpr std::array wordings = {
    wording{kind::refused_by_policy, "resolved-address", "resolves to no address that may be reached", 403,
            socks_reply::not_allowed},
    wording{kind::no_such_name, "dns-no-such-name", "does not exist in DNS", 502,
            socks_reply::host_unreachable},
    wording{kind::lookup_failed, "dns-failure", "could not be looked up: the resolver failed", 502,
            socks_reply::host_unreachable},
    wording{kind::lookup_timed_out, "dns-timeout", "could not be looked up in time", 504,
            socks_reply::host_unreachable},
    wording{kind::connection_refused, "connection-refused", "refused the connection", 502,
            socks_reply::connection_refused},
    wording{kind::host_unreachable, "host-unreachable", "cannot be reached", 502,
            socks_reply::host_unreachable},
    wording{kind::network_unreachable, "network-unreachable", "is on a network that cannot be reached", 502,
            socks_reply::network_unreachable},
    wording{kind::timed_out, "connect-timeout", "did not answer in time", 504, socks_reply::host_unreachable},
    wording{kind::upstream_failed, "upstream-failed", "was not reached: the upstream proxy does not answer",
            502, socks_reply::general_failure},
    wording{kind::upstream_refused, "upstream-refused", "was refused by the upstream proxy", 502,
            socks_reply::general_failure},
    wording{kind::no_resources, "no-resources", "was not dialled: the proxy has no descriptors left", 503,
            socks_reply::general_failure},
    wording{kind::failed, "connect-failed", "could not be connected to", 502, socks_reply::general_failure},
    wording{kind::cancelled, "cancelled", "is not wanted any more", 502, socks_reply::general_failure},
};

const wording& wording_of(kind what) {
  return wordings[static_cast<std::size_t>(what)];
}

constexpr bool in_order() {
  for (std::size_t i = 0; i < wordings.size(); ++i)
    if (wordings[i].what != static_cast<kind>(i)) return false;
  return wordings.size() == static_cast<std::size_t>(kind::cancelled) + 1;
}
static_assert(in_order());

}  // namespace

std::string_view dial_failure::word() const {
  return what == kind::refused_by_policy ? to_string(by.reason) : wording_of(what).word;
}

std::string_view dial_failure::text() const {
  return wording_of(what).text;
}

unsigned dial_failure::http_status() const {
  return wording_of(what).status;
}

socks_reply dial_failure::reply() const {
  return wording_of(what).reply;
}

dial_failure::kind failure_of_errno(int code) {
  switch (code) {
    case ECONNREFUSED:
    case ECONNRESET:
      return kind::connection_refused;
    case EHOSTUNREACH:
    case EHOSTDOWN:
      return kind::host_unreachable;
    case ENETUNREACH:
    case ENETDOWN:
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
      return kind::network_unreachable;
    case ETIMEDOUT:
      return kind::timed_out;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return kind::no_resources;
    default:
      return kind::failed;
  }
}

}  // namespace ccbox::egress
