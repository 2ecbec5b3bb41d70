#include "destination.hpp"

#include <algorithm>
#include <charconv>

namespace ccbox::egress {

namespace {

constexpr std::size_t max_name_bytes = 253;
constexpr std::size_t max_label_bytes = 63;

bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

std::string_view why_not_a_name_byte(char c) {
  switch (c) {
    case '\0':
      return "the host name contains a NUL byte";
    case '@':
      return "the host name contains a user name";
    case ':':
      return "the host name contains a colon; an IPv6 address is written in brackets";
    case '%':
      return "the host name contains a percent sign, an escape or a zone";
    case '/':
    case '\\':
    case '?':
    case '#':
      return "the host name contains a part of a URL";
    case '*':
      return "the host name contains a wildcard";
    case ' ':
    case '\t':
    case '\r':
    case '\n':
      return "the host name contains a space or a line end";
    default:
      if (static_cast<unsigned char>(c) >= 0x80)
        return "the host name is not ASCII; an international name is written in its xn-- form";
      return "the host name contains a byte other than letters, digits, hyphen, underscore and dot";
  }
}

parsed<destination> parse_bracketed(std::string_view host, std::uint16_t port) {
  if (host.size() < 2 || host.back() != ']') return malformed{"the bracket of an IPv6 address is not closed"};
  host = host.substr(1, host.size() - 2);
  if (host.find('%') != host.npos) return malformed{"an IPv6 address with a zone is not taken"};
  const auto address = parse_ip_address(host);
  if (!address || host.find(':') == host.npos) return malformed{"there is no IPv6 address in the brackets"};
  return destination{*address, port};
}

}  // namespace

parsed<destination> parse_host(std::string_view host, std::uint16_t port) {
  if (port == 0) return malformed{"the port is 0"};
  if (host.empty()) return malformed{"the host name is empty"};
  if (host[0] == '[') return parse_bracketed(host, port);

  std::size_t label = 0;  // its first byte
  for (std::size_t i = 0; i < host.size(); ++i) {
    if (host[i] == '.') {
      if (i == label) return malformed{"a label of the host name is empty"};
      label = i + 1;
    } else if (!is_name_byte(host[i])) {
      return malformed{why_not_a_name_byte(host[i])};
    } else if (i - label == max_label_bytes) {
      return malformed{"a label of the host name is longer than 63 bytes"};
    }
  }
  if (host.back() == '.') host.remove_suffix(1);
  if (host.size() > max_name_bytes) return malformed{"the host name is longer than 253 bytes"};

  if (ends_in_number(host)) {
    const auto address = parse_loose_ipv4(host);
    if (!address) return malformed{"the host name ends in a number but is no IPv4 address"};
    return destination{*address, port};
  }
  std::string name(host);
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return destination{std::move(name), port};
}

parsed<destination> parse_authority(std::string_view authority, std::uint16_t default_port) {
  std::size_t host_size = authority.size();
  if (!authority.empty() && authority[0] == '[') {
    const auto closing = authority.find(']');
    if (closing == authority.npos) return malformed{"the bracket of an IPv6 address is not closed"};
    host_size = closing + 1;
  } else if (const auto colon = authority.find(':'); colon != authority.npos) {
    host_size = colon;
  }
  auto port_text = authority.substr(host_size);
  if (port_text.empty()) {
    if (default_port == 0) return malformed{"the port is missing"};
    return parse_host(authority, default_port);
  }
  if (port_text[0] != ':') return malformed{"something other than a port follows the IPv6 address"};
  port_text.remove_prefix(1);
  if (port_text.find('@') != port_text.npos) return malformed{"the authority contains a user name"};
  if (port_text.find(':') != port_text.npos)
    return malformed{"there is more than one colon; an IPv6 address is written in brackets"};
  std::uint16_t port = 0;
  const auto end = port_text.data() + port_text.size();
  // No leading zeros: some readers take them for octal.
  if (port_text.empty() || port_text[0] < '1' || port_text[0] > '9')
    return malformed{"the port is not a number from 1 to 65535"};
  if (const auto [at, failed] = std::from_chars(port_text.data(), end, port);
      failed != std::errc{} || at != end)
    return malformed{"the port is not a number from 1 to 65535"};
  return parse_host(authority.substr(0, host_size), port);
}

parsed<destination> from_domain_name(std::string_view bytes, std::uint16_t port) {
  // Some clients put every host there as text, an IPv6 address without brackets too.
  if (bytes.find(':') != bytes.npos)
    if (const auto address = parse_ip_address(bytes); address && port != 0)
      return destination{*address, port};
  return parse_host(bytes, port);
}

parsed<destination> from_address_bytes(std::string_view four_or_sixteen_bytes, std::uint16_t port) {
  if (port == 0) return malformed{"the port is 0"};
  ip_address address;
  if (four_or_sixteen_bytes.size() == 4) {
    address = ip_address::from_v4(0);
  } else if (four_or_sixteen_bytes.size() != 16) {
    return malformed{"the address has neither 4 nor 16 bytes"};
  }
  std::copy_backward(four_or_sixteen_bytes.begin(), four_or_sixteen_bytes.end(), address.bytes.end());
  return destination{address, port};
}

std::string host_text(const destination& to) {
  if (!to.is_address()) return to.name();
  auto text = to_string(to.address());
  return to.address().is_v4() ? text : "[" + text + "]";
}

std::string authority_text(const destination& to) {
  return host_text(to) + ":" + std::to_string(to.port);
}

}  // namespace ccbox::egress
