// Where a client wants to go, in the one form that is matched, resolved, dialled and written into requests.
// Every protocol's bytes go through the functions below; nothing else reads a host from the wire.
//
// Pure; any thread; no allocation beyond the strings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "address.hpp"

namespace ccbox::egress {

struct destination {
  // A name: lower-case labels of [a-z0-9_-], 1 to 63 bytes each, no empty one, no trailing dot, 253 bytes at
  // most, not ending in a number.
  std::variant<std::string, ip_address> host;
  std::uint16_t port = 0;  // never 0
  bool operator==(const destination&) const = default;

  bool is_address() const { return std::holds_alternative<ip_address>(host); }
  const std::string& name() const { return std::get<std::string>(host); }
  const ip_address& address() const { return std::get<ip_address>(host); }
};

// Why bytes are no destination; a fixed text such as "a label of the host name is empty".
struct malformed {
  std::string_view why;
  bool operator==(const malformed&) const = default;
};

template <class T>
using parsed = std::variant<T, malformed>;

// A host as HTTP writes it: a name, an IPv4 address in any spelling that a browser takes, or [IPv6]. One
// trailing dot is dropped.
parsed<destination> parse_host(std::string_view host, std::uint16_t port);
// host[:port]; without a port `default_port`, and 0 there means that one must be given.
parsed<destination> parse_authority(std::string_view authority, std::uint16_t default_port);
// SOCKS: a DOMAINNAME field (an address in text is taken as the address), and the 4 or 16 bytes of the
// others.
parsed<destination> from_domain_name(std::string_view bytes, std::uint16_t port);
parsed<destination> from_address_bytes(std::string_view four_or_sixteen_bytes, std::uint16_t port);

std::string host_text(const destination& to);       // name, 1.2.3.4 or [::1]
std::string authority_text(const destination& to);  // host_text:port

}  // namespace ccbox::egress
