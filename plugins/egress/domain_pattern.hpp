// One entry of an allow or deny list.
//
//   api.example.com        that name alone
//   *.example.com          every name below, at any depth, not example.com itself
//   bedrock.*.example.com  exactly one label in the middle
//   192.0.2.7, [2001:db8::7]  that address, written as such by the client
//   …:8443                 only that port; without one 80 and 443, and 22 too for hosts listed as git hosts
//
// Exactly one `*`, a whole label, with two labels or more after it. Everything else is refused with the
// reason: empty labels, spaces, schemes, paths, user names, non-ASCII (the reason then gives the A-label form
// to write, where it can), partial labels, an address with `*`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "address.hpp"
#include "destination.hpp"

namespace ccbox::egress {

struct domain_pattern {
  enum class form { exact, subdomains, one_label, address };
  form shape = form::exact;
  std::string name;        // exact: the name; subdomains: what follows "*."; one_label: what is before ".*."
  std::string after;       // one_label: what follows ".*."
  ip_address address;      // address
  std::uint16_t port = 0;  // 0: the default ports
  bool operator==(const domain_pattern&) const = default;
};

struct bad_pattern {
  std::string why;  // names the cause and the remedy, not the entry
};
std::variant<domain_pattern, bad_pattern> parse_domain_pattern(std::string_view text);
std::string to_string(const domain_pattern& pattern);

}  // namespace ccbox::egress
