// An IP address and what kind it is. IPv4 addresses that IPv6 carries are judged as the IPv4 address they
// reach. A NAT64 prefix of somebody's own cannot be told from other addresses and is not looked into.
//
// Pure values; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ccbox::egress {

// 16 bytes in network order; IPv4 as ::ffff:a.b.c.d, so that equal hosts are equal values.
struct ip_address {
  std::array<std::uint8_t, 16> bytes{};
  bool operator==(const ip_address&) const = default;
  bool operator<(const ip_address& other) const { return bytes < other.bytes; }

  bool is_v4() const;
  static ip_address from_v4(std::uint32_t host_order);
  std::uint32_t v4() const;  // host order; only if is_v4()
};

// Dotted quad (strictly four decimal numbers, no leading zeros) or RFC 4291 text without zone; nothing else.
std::optional<ip_address> parse_ip_address(std::string_view text);
// The WHATWG rule for hosts whose last label is a number: 127.1, 0x7f.1, 2130706433, 0177.0.0.1. Nothing: not
// an address.
std::optional<ip_address> parse_loose_ipv4(std::string_view text);
// Would the WHATWG rule read it as an IPv4 address, well-formed or not? (Last label all digits, or 0x…)
bool ends_in_number(std::string_view text);
std::string to_string(const ip_address& address);  // RFC 5952; IPv4 dotted

// A range a.b.c.d/n or x::/n; bits beyond the prefix must be 0. A plain address is a range of one. A range of
// IPv6 addresses, ::/0 too, holds no IPv4 address.
struct address_range {
  ip_address first;
  unsigned prefix_bits = 128;  // of the 16 bytes: IPv4 prefixes count from 96
  bool contains(const ip_address& address) const;
};
std::optional<address_range> parse_address_range(std::string_view text);

enum class address_class {
  global,
  metadata,     // the floor that no rule lifts: cloud metadata services, wherever they live
  unspecified,  // 0.0.0.0/8, ::
  loopback,
  link_local,
  private_use,  // RFC 1918, unique local
  shared,       // 100.64.0.0/10
  benchmark,    // 198.18.0.0/15, what fake-IP resolvers answer
  multicast,
  reserved,  // everything else that is not globally reachable
};
std::string_view to_string(address_class kind);  // for people: "a loopback address"

// The IPv4 addresses that an IPv6 address embeds: compatible, translated, NAT64, 6to4, Teredo, ISATAP. (A
// mapped one is the IPv4 address.)
struct embedded_addresses {
  std::array<ip_address, 5> found;
  std::size_t count = 0;
  const ip_address* begin() const { return found.data(); }
  const ip_address* end() const { return found.data() + count; }
};
embedded_addresses embedded_in(const ip_address& address);

// The class of the address and of every address that it embeds: the worst of them, metadata first.
address_class classify(const ip_address& address);
// Both spellings: the address itself and every IPv4 address that it embeds.
bool in_range(const ip_address& address, const address_range& range);

}  // namespace ccbox::egress
