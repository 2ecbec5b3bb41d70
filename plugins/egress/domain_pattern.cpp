#include "domain_pattern.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace ccbox::egress {

namespace {

// One code point of UTF-8; nothing: malformed.
std::optional<char32_t> next_code_point(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (size == 0 || first > 0xf4 || text.size() < size) return {};
  char32_t out = size == 1 ? first : first & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80) return {};
    out = out << 6 | (byte & 0x3f);
  }
  if ((size == 3 && out < 0x800) || (size == 4 && out < 0x10000)) return {};
  text.remove_prefix(size);
  return out;
}

// Letters that IDNA leaves as they are. Others it maps, in ways that take a table; a wrong suggestion would
// allow somebody else's name.
bool is_plain_letter(char32_t c) {
  return (c >= 0xe0 && c <= 0xff && c != 0xf7) || (c >= 0x3b1 && c <= 0x3c9 && c != 0x3c2) ||
         (c >= 0x430 && c <= 0x45f) || (c >= 0x3041 && c <= 0x3096) || (c >= 0x30a1 && c <= 0x30fa) ||
         (c >= 0x4e00 && c <= 0x9fa5) || (c >= 0xac00 && c <= 0xd7a3);
}

// RFC 3492, encoding. `label` holds at least one code point beyond ASCII.
std::string punycode(const std::vector<char32_t>& label) {
  constexpr unsigned base = 36, least = 1, most = 26, skew = 38, damp = 700;
  std::string out;
  for (const char32_t c : label)
    if (c < 0x80) out += static_cast<char>(c);
  const auto basic = static_cast<unsigned>(out.size());
  if (basic > 0) out += '-';
  unsigned n = 0x80, delta = 0, bias = 72;
  for (unsigned handled = basic; handled < label.size(); ++n, ++delta) {
    char32_t next = 0x110000;
    for (const char32_t c : label)
      if (c >= n) next = std::min(next, c);
    delta += (static_cast<unsigned>(next) - n) * (handled + 1);
    n = static_cast<unsigned>(next);
    for (const char32_t c : label) {
      if (c < n) ++delta;
      if (c != n) continue;
      unsigned left = delta;
      for (unsigned k = base;; k += base) {
        const unsigned threshold = k <= bias ? least : std::min(k - bias, most);
        const unsigned digit = left < threshold ? left : threshold + (left - threshold) % (base - threshold);
        out += static_cast<char>(digit < 26 ? 'a' + digit : '0' + digit - 26);
        if (left < threshold) break;
        left = (left - threshold) / (base - threshold);
      }
      unsigned adapted = (handled == basic ? delta / damp : delta / 2);
      adapted += adapted / (handled + 1);
      unsigned k = 0;
      for (; adapted > (base - least) * most / 2; k += base)
        adapted /= base - least;
      bias = k + (base - least + 1) * adapted / (adapted + skew);
      delta = 0;
      ++handled;
    }
  }
  return out;
}

// The entry with its international labels as A-labels, where that is certain.
std::optional<std::string> ascii_form(std::string_view text) {
  std::string out;
  std::vector<char32_t> label;
  bool international = false;
  const auto end_label = [&] {
    if (international)
      out += "xn--" + punycode(label);
    else
      out.append(label.begin(), label.end());
    label.clear();
    international = false;
  };
  if (text.size() > 1000) return {};
  while (!text.empty()) {
    const auto c = next_code_point(text);
    if (!c || *c <= ' ' || *c == 0x7f || (*c >= 0x80 && !is_plain_letter(*c))) return {};
    if (*c == '.' || *c == ':') {
      end_label();
      out += static_cast<char>(*c);
      continue;
    }
    international = international || *c >= 0x80;
    label.push_back(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
  }
  end_label();
  return out;
}

// What is wrong with characters anywhere in the entry; empty: nothing.
std::string wrong_characters(std::string_view text) {
  const auto is_space = [](unsigned char c) { return c <= ' ' || c == 0x7f; };
  if (std::any_of(text.begin(), text.end(), is_space))
    return "it contains a space or a control character; write the name alone";
  if (std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; })) {
    const auto form = ascii_form(text);
    if (form && std::holds_alternative<domain_pattern>(parse_domain_pattern(*form)))
      return "it is not ASCII; write " + *form;
    return "it is not ASCII; write it in its xn-- form";
  }
  if (text.find("://") != text.npos) return "it is a URL; write the host name alone, without scheme and path";
  if (text.find('/') != text.npos)
    return "it contains a slash; paths cannot be told apart and address ranges are not taken: write a name "
           "or "
           "one address";
  if (text.find('@') != text.npos) return "it contains a user name; write what follows the @";
  return {};
}

std::string wrong_wildcard(std::string_view name) {
  if (name == "*") return "a * alone would allow everything; name the domains";
  if (std::count(name.begin(), name.end(), '*') > 1)
    return "it has more than one *; write one entry for each";
  const auto star = name.find('*');
  const bool whole =
      (star == 0 || name[star - 1] == '.') && (star + 1 == name.size() || name[star + 1] == '.');
  if (!whole) return "the * is only a part of a label; it stands for whole labels";
  const auto after = name.substr(std::min(star + 2, name.size()));
  if (after.empty()) return "the * is the last label; it has two labels or more after it";
  if (ends_in_number(after)) return "it is an address with a *; write each address";
  if (after.find('.') == after.npos || after.find('.') + 1 == after.size())
    return "the * has only one label after it; it has two or more, as in *.example.com";
  return {};
}

std::variant<domain_pattern, bad_pattern> parse_bracketed(std::string_view host, std::uint16_t port) {
  const auto parsed = parse_host(host, 1);
  if (const auto* bad = std::get_if<malformed>(&parsed)) return bad_pattern{std::string(bad->why)};
  domain_pattern out;
  out.shape = domain_pattern::form::address;
  out.address = std::get<destination>(parsed).address();
  out.port = port;
  return out;
}

// A name without `*`, or an address.
std::variant<domain_pattern, bad_pattern> parse_plain(std::string_view host, std::uint16_t port) {
  auto parsed = parse_host(host, 1);
  if (const auto* bad = std::get_if<malformed>(&parsed)) return bad_pattern{std::string(bad->why)};
  auto& to = std::get<destination>(parsed);
  domain_pattern out;
  out.port = port;
  if (!to.is_address()) {
    out.name = std::get<std::string>(std::move(to.host));
    return out;
  }
  // Other spellings mean other addresses to other readers: 010.0.0.1 is 8.0.0.1 or 10.0.0.1.
  if (!parse_ip_address(host))
    return bad_pattern{"it is another spelling of an address; write " + host_text(to)};
  out.shape = domain_pattern::form::address;
  out.address = to.address();
  return out;
}

std::variant<domain_pattern, bad_pattern> parse_wildcard(std::string_view host, std::uint16_t port) {
  if (auto why = wrong_wildcard(host); !why.empty()) return bad_pattern{std::move(why)};
  // With a label of one byte for the * it must be a name.
  std::string one(host);
  const auto star = one.find('*');
  one[star] = 'x';
  auto parsed = parse_host(one, 1);
  if (const auto* bad = std::get_if<malformed>(&parsed)) return bad_pattern{std::string(bad->why)};
  const auto& folded = std::get<destination>(parsed).name();
  domain_pattern out;
  out.port = port;
  if (star == 0) {
    out.shape = domain_pattern::form::subdomains;
    out.name = folded.substr(2);
  } else {
    out.shape = domain_pattern::form::one_label;
    out.name = folded.substr(0, star - 1);
    out.after = folded.substr(star + 2);
  }
  return out;
}

}  // namespace

std::variant<domain_pattern, bad_pattern> parse_domain_pattern(std::string_view text) {
  if (text.empty()) return bad_pattern{"it is empty; write a name"};
  if (auto why = wrong_characters(text); !why.empty()) return bad_pattern{std::move(why)};

  auto host = text;
  std::uint16_t port = 0;
  const bool bracketed = text[0] == '[';
  const auto colon = text.find(':', bracketed ? std::min(text.find(']'), text.size()) : 0);
  if (colon != text.npos) {
    if (parse_ip_address(text))
      return bad_pattern{"an IPv6 address is written in brackets: [" + std::string(text) + "]"};
    const auto digits = text.substr(colon + 1);
    const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (failed != std::errc{} || end != digits.data() + digits.size() || digits[0] == '0')
      return bad_pattern{"what follows the colon is no port; write a number from 1 to 65535"};
    host = text.substr(0, colon);
  }
  if (bracketed) return parse_bracketed(host, port);
  if (host.find('*') != host.npos) return parse_wildcard(host, port);
  return parse_plain(host, port);
}

std::string to_string(const domain_pattern& pattern) {
  std::string out;
  switch (pattern.shape) {
    case domain_pattern::form::exact:
      out = pattern.name;
      break;
    case domain_pattern::form::subdomains:
      out = "*." + pattern.name;
      break;
    case domain_pattern::form::one_label:
      out = pattern.name + ".*." + pattern.after;
      break;
    case domain_pattern::form::address:
      out = host_text({pattern.address, 0});
      break;
  }
  if (pattern.port != 0) out += ":" + std::to_string(pattern.port);
  return out;
}

}  // namespace ccbox::egress
