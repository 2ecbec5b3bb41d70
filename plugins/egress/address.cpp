#include "address.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>

namespace ccbox::egress {

namespace {

constexpr std::size_t v4_at = 12;  // where the IPv4 address is in the 16 bytes
constexpr unsigned v4_prefix_bits = 96;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Decimal without sign or leading zero, at most `limit`.
std::optional<unsigned> parse_decimal(std::string_view text, unsigned limit) {
  if (text.empty() || text.size() > 3 || (text.size() > 1 && text[0] == '0')) return {};
  unsigned value = 0;
  for (const char c : text) {
    if (!is_digit(c)) return {};
    value = value * 10 + static_cast<unsigned>(c - '0');
  }
  if (value > limit) return {};
  return value;
}

std::optional<ip_address> parse_dotted(std::string_view text) {
  std::uint32_t value = 0;
  for (int part = 0; part < 4; ++part) {
    const auto dot = part < 3 ? text.find('.') : text.size();
    if (dot == text.npos) return {};
    const auto number = parse_decimal(text.substr(0, dot), 255);
    if (!number) return {};
    value = value << 8 | *number;
    text.remove_prefix(std::min(dot + 1, text.size()));
  }
  return ip_address::from_v4(value);
}

// One number of the WHATWG rule. Values that fit nowhere are saturated.
std::optional<std::uint64_t> parse_loose_number(std::string_view text) {
  constexpr std::uint64_t too_much = std::uint64_t{1} << 40;
  if (text.empty()) return {};
  unsigned base = 10;
  if (text.size() >= 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() >= 2 && text[0] == '0') {
    base = 8;
    text.remove_prefix(1);
  }
  std::uint64_t value = 0;
  for (const char c : text) {
    unsigned digit = 16;
    if (is_digit(c)) digit = static_cast<unsigned>(c - '0');
    if (c >= 'a' && c <= 'f') digit = static_cast<unsigned>(c - 'a') + 10;
    if (c >= 'A' && c <= 'F') digit = static_cast<unsigned>(c - 'A') + 10;
    if (digit >= base) return {};
    value = std::min(value * base + digit, too_much);
  }
  return value;
}

std::string_view without_root_dot(std::string_view text) {
  if (text.size() > 1 && text.back() == '.') text.remove_suffix(1);
  return text;
}

struct classed_range {
  address_range range;
  address_class kind;
};

address_range range(std::initializer_list<std::uint8_t> leading, unsigned prefix_bits) {
  address_range out;
  std::copy(leading.begin(), leading.end(), out.first.bytes.begin());
  out.prefix_bits = prefix_bits;
  return out;
}

address_range v4_range(std::uint32_t first, unsigned prefix_bits) {
  return {ip_address::from_v4(first), v4_prefix_bits + prefix_bits};
}

// The first range that holds the address decides. From the IANA registries of special-purpose addresses,
// without the few exceptions inside them that are globally reachable and that nobody needs through a proxy.
const std::array v4_ranges{
    classed_range{v4_range(0xa9fe0000, 16), address_class::metadata},  // 169.254.0.0/16
    classed_range{v4_range(0x646464c8, 32), address_class::metadata},  // 100.100.100.200: Alibaba
    classed_range{v4_range(0xa83f8110, 32), address_class::metadata},  // 168.63.129.16: Azure
    classed_range{v4_range(0xc00000c0, 32), address_class::metadata},  // 192.0.0.192: Oracle
    classed_range{v4_range(0x00000000, 8), address_class::unspecified},
    classed_range{v4_range(0x7f000000, 8), address_class::loopback},
    classed_range{v4_range(0x0a000000, 8), address_class::private_use},
    classed_range{v4_range(0xac100000, 12), address_class::private_use},  // 172.16.0.0/12
    classed_range{v4_range(0xc0a80000, 16), address_class::private_use},  // 192.168.0.0/16
    classed_range{v4_range(0x64400000, 10), address_class::shared},       // 100.64.0.0/10
    classed_range{v4_range(0xc6120000, 15), address_class::benchmark},    // 198.18.0.0/15
    classed_range{v4_range(0xc0000000, 24), address_class::reserved},     // 192.0.0.0/24
    classed_range{v4_range(0xc0000200, 24), address_class::reserved},     // 192.0.2.0/24
    classed_range{v4_range(0xc6336400, 24), address_class::reserved},     // 198.51.100.0/24
    classed_range{v4_range(0xcb007100, 24), address_class::reserved},     // 203.0.113.0/24
    classed_range{v4_range(0xc0586300, 24), address_class::reserved},     // 192.88.99.0/24
    classed_range{v4_range(0xe0000000, 4), address_class::multicast},
    classed_range{v4_range(0xf0000000, 4), address_class::reserved},
};

const std::array v6_ranges{
    classed_range{range({0xfd, 0x00, 0x0e, 0xc2}, 32), address_class::metadata},  // fd00:ec2::/32: EC2
    // Google
    classed_range{range({0xfd, 0x20, 0x00, 0xce, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54}, 128),
                  address_class::metadata},  // fd20:ce::254
    // Oracle
    classed_range{range({0xfd, 0x00, 0x00, 0xc1, 0, 0, 0, 0, 0, 0, 0, 0, 0xa9, 0xfe, 0xa9, 0xfe}, 128),
                  address_class::metadata},  // fd00:c1::a9fe:a9fe
    // Scaleway
    classed_range{range({0xfd, 0x00, 0x00, 0x42, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x42}, 128),
                  address_class::metadata},  // fd00:42::42
    classed_range{range({0xfd, 0x00, 0xa9, 0xfe, 0xa9, 0xfe, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01}, 128),
                  address_class::metadata},  // fd00:a9fe:a9fe::1
    // Alibaba
    classed_range{range({0xfd, 0x00, 0x01, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0x00, 0x02, 0x00}, 128),
                  address_class::metadata},  // fd00:100::100:200
    classed_range{range({}, 128), address_class::unspecified},
    classed_range{range({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128), address_class::loopback},
    classed_range{range({0xfe, 0x80}, 10), address_class::link_local},
    classed_range{range({0xfc}, 7), address_class::private_use},
    classed_range{range({0xfe, 0xc0}, 10), address_class::private_use},  // site-local, as it once was
    classed_range{range({0xff}, 8), address_class::multicast},
    classed_range{range({0x20, 0x01, 0x00}, 23), address_class::reserved},        // 2001::/23, Teredo in it
    classed_range{range({0x20, 0x01, 0x0d, 0xb8}, 32), address_class::reserved},  // 2001:db8::/32
    classed_range{range({0x20, 0x02}, 16), address_class::reserved},              // 6to4
    classed_range{range({0x3f, 0xff, 0x00}, 20), address_class::reserved},        // 3fff::/20
    classed_range{range({0x20}, 3), address_class::global},                       // 2000::/3
    classed_range{range({0x00, 0x64, 0xff, 0x9b}, 96),
                  address_class::global},  // NAT64: what it embeds counts
};

template <class Ranges>
address_class class_in(const Ranges& ranges, const ip_address& address, address_class otherwise) {
  for (const auto& [range, kind] : ranges)
    if (range.contains(address)) return kind;
  return otherwise;
}

// Of two classes the one to speak of; the enumerators stand in this order, global apart.
address_class worse(address_class a, address_class b) {
  if (a == address_class::global) return b;
  if (b == address_class::global) return a;
  return std::min(a, b);
}

}  // namespace

bool ip_address::is_v4() const {
  static constexpr std::array<std::uint8_t, v4_at> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(mapped.begin(), mapped.end(), bytes.begin());
}

ip_address ip_address::from_v4(std::uint32_t host_order) {
  ip_address out;
  out.bytes[10] = out.bytes[11] = 0xff;
  for (unsigned i = 0; i < 4; ++i)
    out.bytes[v4_at + i] = static_cast<std::uint8_t>(host_order >> (24 - 8 * i));
  return out;
}

std::uint32_t ip_address::v4() const {
  std::uint32_t out = 0;
  for (std::size_t i = v4_at; i < 16; ++i)
    out = out << 8 | bytes[i];
  return out;
}

std::optional<ip_address> parse_ip_address(std::string_view text) {
  if (text.find(':') == text.npos) return parse_dotted(text);
  // inet_pton stops at NUL and some take more than RFC 4291 has: it sees nothing but these characters.
  char copy[INET6_ADDRSTRLEN];
  if (text.size() >= sizeof copy || text.find_first_not_of("0123456789abcdefABCDEF:.") != text.npos)
    return {};
  *std::copy(text.begin(), text.end(), copy) = '\0';
  ip_address out;
  if (inet_pton(AF_INET6, copy, out.bytes.data()) != 1) return {};
  return out;
}

std::optional<ip_address> parse_loose_ipv4(std::string_view text) {
  text = without_root_dot(text);
  std::uint64_t value = 0;
  for (unsigned left = 4;; --left) {
    const auto dot = text.find('.');
    const auto number = parse_loose_number(text.substr(0, dot));
    if (!number) return {};
    if (dot == text.npos) {
      // The last number fills all bytes that are left.
      if (*number >> (8 * left) != 0) return {};
      return ip_address::from_v4(static_cast<std::uint32_t>(value << (8 * left) | *number));
    }
    if (*number > 255 || left == 1) return {};
    value = value << 8 | *number;
    text.remove_prefix(dot + 1);
  }
}

bool ends_in_number(std::string_view text) {
  text = without_root_dot(text);
  const auto dot = text.rfind('.');
  const auto last = dot == text.npos ? text : text.substr(dot + 1);
  if (last.empty()) return false;
  return std::all_of(last.begin(), last.end(), is_digit) || parse_loose_number(last).has_value();
}

std::string to_string(const ip_address& address) {
  const auto& b = address.bytes;
  std::string out;
  const auto append = [&out](unsigned value, int base) {
    char digits[8];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value, base).ptr);
  };
  if (address.is_v4()) {
    for (std::size_t i = v4_at; i < 16; ++i) {
      if (i > v4_at) out += '.';
      append(b[i], 10);
    }
    return out;
  }
  std::array<unsigned, 8> groups;
  for (std::size_t i = 0; i < 8; ++i)
    groups[i] = static_cast<unsigned>(b[2 * i] << 8 | b[2 * i + 1]);
  // The longest run of two zero groups or more is left out, the first of equals.
  std::size_t gap = 8, gap_size = 1;
  for (std::size_t i = 0; i < 8; ++i) {
    std::size_t end = i;
    while (end < 8 && groups[end] == 0)
      ++end;
    if (end - i > gap_size) gap = i, gap_size = end - i;
  }
  for (std::size_t i = 0; i < 8; ++i) {
    if (i == gap) {
      out += "::";
      i += gap_size - 1;
      continue;
    }
    if (!out.empty() && out.back() != ':') out += ':';
    append(groups[i], 16);
  }
  return out;
}

bool address_range::contains(const ip_address& address) const {
  if (prefix_bits < v4_prefix_bits && address.is_v4()) return false;
  const std::size_t whole = prefix_bits / 8;
  if (!std::equal(first.bytes.begin(), first.bytes.begin() + static_cast<std::ptrdiff_t>(whole),
                  address.bytes.begin()))
    return false;
  const unsigned rest = prefix_bits % 8;
  return rest == 0 || (first.bytes[whole] ^ address.bytes[whole]) >> (8 - rest) == 0;
}

std::optional<address_range> parse_address_range(std::string_view text) {
  const auto slash = text.find('/');
  const auto address = parse_ip_address(text.substr(0, slash));
  if (!address) return {};
  address_range out{*address, 128};
  if (slash != text.npos) {
    const bool dotted = text.find(':') == text.npos;
    const auto bits = parse_decimal(text.substr(slash + 1), dotted ? 32 : 128);
    if (!bits) return {};
    out.prefix_bits = *bits + (dotted ? v4_prefix_bits : 0);
  }
  for (unsigned bit = out.prefix_bits; bit < 128; ++bit)
    if ((address->bytes[bit / 8] >> (7 - bit % 8) & 1) != 0) return {};
  return out;
}

std::string_view to_string(address_class kind) {
  switch (kind) {
    case address_class::global:
      return "a public address";
    case address_class::metadata:
      return "the address of a cloud metadata service";
    case address_class::unspecified:
      return "an unspecified address, which is this host";
    case address_class::loopback:
      return "a loopback address";
    case address_class::link_local:
      return "a link-local address";
    case address_class::private_use:
      return "a private address";
    case address_class::shared:
      return "an address of a carrier's network";
    case address_class::benchmark:
      return "a benchmark address";
    case address_class::multicast:
      return "a multicast address";
    case address_class::reserved:
      return "a reserved address";
  }
  return "an unknown address";
}

embedded_addresses embedded_in(const ip_address& address) {
  embedded_addresses out;
  if (address.is_v4()) return out;
  const auto& b = address.bytes;
  const auto add = [&](std::size_t i, std::size_t j, std::size_t k, std::size_t l, std::uint32_t flip = 0) {
    const std::uint32_t value =
        std::uint32_t{b[i]} << 24 | std::uint32_t{b[j]} << 16 | std::uint32_t{b[k]} << 8 | b[l];
    out.found[out.count++] = ip_address::from_v4(value ^ flip);
  };
  const auto begins = [&b](std::initializer_list<std::uint8_t> with) {
    return std::equal(with.begin(), with.end(), b.begin());
  };
  if (begins({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})) {
    // Compatible. :: and ::1 are not meant so.
    if (b[12] != 0 || b[13] != 0 || b[14] != 0 || b[15] > 1) add(12, 13, 14, 15);
  } else if (begins({0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0}) ||
             begins({0x00, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0})) {
    add(12, 13, 14, 15);
  } else if (begins({0x00, 0x64, 0xff, 0x9b, 0x00, 0x01})) {
    // NAT64 of a site, with a prefix of /96, /48, /56 or /64: which, only the site knows. No translator sends
    // to 0.0.0.0/8, which is what the wrong ones of them mostly give.
    if (b[12] != 0) add(12, 13, 14, 15);
    if (b[6] != 0) add(6, 7, 9, 10);
    if (b[7] != 0) add(7, 9, 10, 11);
    if (b[9] != 0) add(9, 10, 11, 12);
  } else if (begins({0x20, 0x02})) {
    add(2, 3, 4, 5);
  } else if (begins({0x20, 0x01, 0x00, 0x00})) {
    add(4, 5, 6, 7);                   // Teredo: the server
    add(12, 13, 14, 15, 0xffffffffU);  // and the client
  }
  if ((b[8] & 0xfc) == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe) add(12, 13, 14, 15);  // ISATAP
  return out;
}

address_class classify(const ip_address& address) {
  if (address.is_v4()) return class_in(v4_ranges, address, address_class::global);
  auto kind = class_in(v6_ranges, address, address_class::reserved);
  for (const auto& inner : embedded_in(address))
    kind = worse(kind, classify(inner));
  return kind;
}

bool in_range(const ip_address& address, const address_range& range) {
  if (range.contains(address)) return true;
  const auto inside = embedded_in(address);
  return std::any_of(inside.begin(), inside.end(),
                     [&](const ip_address& inner) { return range.contains(inner); });
}

}  // namespace ccbox::egress
