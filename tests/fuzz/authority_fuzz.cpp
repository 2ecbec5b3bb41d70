#include <algorithm>
#include <string>

#include "fuzz/target.hpp"
#include "plugins/egress/destination.hpp"

namespace {

using namespace ccbox::egress;

void require_canonical(const destination& to) {
  fuzz::require(to.port != 0, "a destination has a port");
  if (to.is_address()) return;
  const auto& name = to.name();
  fuzz::require(!name.empty() && name.size() <= 253, "a name has 1 to 253 bytes");
  fuzz::require(!ends_in_number(name), "nobody reads a name as an address");
  std::size_t label = 0;
  for (const char c : name + ".") {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    fuzz::require(letter || c == '.', "a name has lower-case letters, digits, hyphens, underscores and dots");
    fuzz::require(c != '.' || label > 0, "no label is empty");
    label = c == '.' ? 0 : label + 1;
    fuzz::require(label <= 63, "no label is longer than 63 bytes");
  }
}

// Whatever form it came in, its canonical text leads to the same place in every form.
void require_same_again(const destination& to) {
  require_canonical(to);
  const parsed<destination> same = to;
  fuzz::require(parse_authority(authority_text(to), 0) == same, "an authority that was written is itself");
  fuzz::require(parse_host(host_text(to), to.port) == same, "a host that was written is itself");
  fuzz::require(from_domain_name(host_text(to), to.port) == same, "SOCKS takes it for the same");
  if (!to.is_address()) return;
  const auto& bytes = to.address().bytes;
  fuzz::require(
      from_address_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, to.port) == same,
      "an address is its bytes");
  fuzz::require(parse_ip_address(to_string(to.address())) == to.address(),
                "an address that was written is itself");
  fuzz::require(
      (classify(to.address()) == address_class::global) || !to_string(classify(to.address())).empty(),
      "every address has a class");
  for (const auto& inner : embedded_in(to.address())) {
    fuzz::require(inner.is_v4(), "IPv4 addresses are embedded");
    fuzz::require(classify(inner) == address_class::global || classify(to.address()) != address_class::global,
                  "no address is better than what it embeds");
  }
}

void check(const parsed<destination>& result) {
  if (const auto* to = std::get_if<destination>(&result)) return require_same_again(*to);
  const auto why = std::get<malformed>(result).why;
  fuzz::require(
      !why.empty() && std::all_of(why.begin(), why.end(), [](char c) { return c >= ' ' && c <= '~'; }),
      "a refusal gives a reason");
}

void run(std::string_view input) {
  const auto host = parse_host(input, 443);
  check(host);
  check(from_domain_name(input, 443));
  check(from_address_bytes(input, 443));
  check(parse_authority(input, 443));
  const auto strict = parse_authority(input, 0);
  check(strict);
  if (std::holds_alternative<destination>(strict))
    fuzz::require(parse_authority(input, 443) == strict, "a default port changes no port that is there");
  if (std::holds_alternative<destination>(host)) {
    fuzz::require(from_domain_name(input, 443) == host, "HTTP and SOCKS mean the same host");
    fuzz::require(parse_authority(input, 443) == host, "a host is an authority");
  }
  if (const auto range = parse_address_range(input))
    fuzz::require(range->contains(range->first), "a range holds its first address");
}

const fuzz::registered target("authority", run);

}  // namespace
