#include "header_fields.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace ccbox::egress {
namespace {

using kind = field_section::kind;

char lower_case(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

constexpr std::array<bool, 256> token_bytes = [] {
  std::array<bool, 256> table{};
  for (const char c :
       std::string_view("!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"))
    table[static_cast<unsigned char>(c)] = true;
  return table;
}();

std::string_view without_space_around(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

struct known_field {
  std::string_view name;
  kind what;
};
constexpr known_field known_fields[] = {
    {"host", kind::host},
    {"content-length", kind::content_length},
    {"connection", kind::connection},
    {"transfer-encoding", kind::transfer_encoding},
    {"proxy-connection", kind::proxy_connection},
    {"proxy-authorization", kind::proxy_authorization},
    {"expect", kind::expect},
    {"upgrade", kind::upgrade},
    {"keep-alive", kind::neighbour},
    {"te", kind::neighbour},
    {"trailer", kind::neighbour},
    {"trailers", kind::neighbour},
    {"http2-settings", kind::neighbour},
    {"proxy-authenticate", kind::neighbour},
    {"proxy-authentication-info", kind::neighbour},
};

kind kind_of(std::string_view name) {
  for (const auto& known : known_fields)
    if (equal_ignoring_case(name, known.name)) return known.what;
  return kind::end_to_end;
}

// Origins that hand fields on as environment variables cannot tell these from the real ones.
bool mimics_framing(std::string_view name) {
  return equal_ignoring_case(name, "content_length") || equal_ignoring_case(name, "transfer_encoding");
}

std::variant<field_section::field, http_error> parse_line(std::string_view text) {
  if (text.starts_with(' ') || text.starts_with('\t'))
    return http_error{400, "a field is continued on the next line, or a line begins with a space"};
  const auto colon = text.find(':');
  if (colon == text.npos) return http_error{400, "a field line has no colon"};
  const auto name = text.substr(0, colon);
  if (name.empty()) return http_error{400, "a field name is empty"};
  if (name.ends_with(' ') || name.ends_with('\t'))
    return http_error{400, "there is a space between a field name and its colon"};
  if (!is_token(name)) return http_error{400, "a field name has a byte that no name may have"};
  if (mimics_framing(name)) return http_error{400, "a framing field is written with an underscore"};
  const auto value = text.substr(colon + 1);
  if (!is_field_text(value)) return http_error{400, "a field value has a control byte"};
  return field_section::field{kind_of(name), name, without_space_around(value)};
}

std::optional<std::uint64_t> plain_number(std::string_view text) {
  if (text.empty() || (text.size() > 1 && text[0] == '0')) return {};
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  // from_chars takes a minus sign; nothing else but digits gets past it.
  if (failure != std::errc() || end != text.data() + text.size() || text[0] == '-') return {};
  return static_cast<std::uint64_t>(number);
}

std::optional<http_error> read_connection(field_section& section, const field_section::field& line) {
  for (const auto option : list_elements(line.value)) {
    if (!is_token(option)) return http_error{400, "the Connection field is malformed"};
    section.close |= equal_ignoring_case(option, "close");
    section.keep_alive |= equal_ignoring_case(option, "keep-alive");
    if (line.what == kind::connection) section.connection_options.push_back(option);
  }
  if (section.connection_options.size() > max_connection_options)
    return http_error{431, "the Connection field lists too many options"};
  return {};
}

std::optional<http_error> read_framing(field_section& section, const field_section::field& line,
                                       unsigned minor_version) {
  if (line.what == kind::content_length) {
    if (section.content_length) return http_error{400, "there is more than one Content-Length"};
    section.content_length = plain_number(line.value);
    if (!section.content_length) return http_error{400, "Content-Length is no plain number"};
  } else if (line.what == kind::transfer_encoding) {
    if (section.chunked) return http_error{400, "there is more than one Transfer-Encoding"};
    if (!equal_ignoring_case(line.value, "chunked"))
      return http_error{400, "Transfer-Encoding is not chunked alone"};
    if (minor_version == 0) return http_error{400, "HTTP/1.0 has no Transfer-Encoding"};
    section.chunked = true;
  }
  if (section.chunked && section.content_length)
    return http_error{400, "there are both Content-Length and Transfer-Encoding"};
  return {};
}

bool lists(const std::vector<std::string_view>& elements, std::string_view lower) {
  return std::any_of(elements.begin(), elements.end(),
                     [&](auto element) { return equal_ignoring_case(element, lower); });
}

}  // namespace

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char c) { return token_bytes[static_cast<unsigned char>(c)]; });
}

bool equal_ignoring_case(std::string_view text, std::string_view lower) {
  return text.size() == lower.size() && std::equal(text.begin(), text.end(), lower.begin(),
                                                   [](char a, char b) { return lower_case(a) == b; });
}

bool is_field_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return c == '\t' || (byte >= 0x20 && byte != 0x7f);
  });
}

std::vector<std::string_view> list_elements(std::string_view value) {
  std::vector<std::string_view> elements;
  while (!value.empty()) {
    const auto comma = std::min(value.find(','), value.size());
    if (const auto element = without_space_around(value.substr(0, comma)); !element.empty())
      elements.push_back(element);
    value.remove_prefix(std::min(comma + 1, value.size()));
  }
  return elements;
}

std::vector<std::pair<std::string, std::string>> field_section::forwarded() const {
  const auto named_by_connection = [&](std::string_view name) {
    return std::any_of(connection_options.begin(), connection_options.end(), [&](std::string_view option) {
      return std::equal(name.begin(), name.end(), option.begin(), option.end(),
                        [](char a, char b) { return lower_case(a) == lower_case(b); });
    });
  };
  std::vector<std::pair<std::string, std::string>> fields;
  fields.reserve(lines.size());
  for (const auto& line : lines)
    if (line.what == kind::end_to_end && !named_by_connection(line.name))
      fields.emplace_back(line.name, line.value);
  return fields;
}

std::variant<field_section, http_error> parse_field_section(std::string_view text, unsigned minor_version) {
  field_section section;
  bool asks_for_websocket = false;
  while (!text.empty()) {
    const auto end = text.find("\r\n");
    if (end == text.npos) return http_error{400, "a line does not end in CRLF"};
    auto parsed = parse_line(text.substr(0, end));
    text.remove_prefix(end + 2);
    if (const auto* wrong = std::get_if<http_error>(&parsed)) return *wrong;
    if (section.lines.size() == max_fields) return http_error{431, "there are more than 128 fields"};
    const auto& line = section.lines.emplace_back(std::get<field_section::field>(parsed));

    std::optional<http_error> wrong;
    if (line.what == kind::connection || line.what == kind::proxy_connection)
      wrong = read_connection(section, line);
    else if (line.what == kind::upgrade)
      asks_for_websocket |= lists(list_elements(line.value), "websocket");
    else
      wrong = read_framing(section, line, minor_version);
    if (wrong) return *wrong;
  }
  // An Upgrade that Connection does not name came from further away, and HTTP/1.0 has none.
  section.to_websocket =
      asks_for_websocket && minor_version >= 1 && lists(section.connection_options, "upgrade");
  return section;
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace ccbox::egress
