#include "request_head.hpp"

#include <algorithm>
#include <cassert>

namespace ccbox::egress {
namespace {

using kind = field_section::kind;

constexpr std::uint16_t default_port = 80;

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7f;
}

http_error too_long(std::string_view bytes) {
  const auto line = bytes.starts_with("\r\n") ? bytes.substr(2) : bytes;
  if (line.find('\n') == line.npos) return {414, "the first line is too long"};
  return {431, "the head has more than 64 KiB"};
}

bool is_visible_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

std::optional<http_error> read_version(std::string_view version, request_head& request) {
  if (version == "HTTP/1.1" || version == "HTTP/1.0") {
    request.minor_version = version.back() == '1' ? 1 : 0;
    return {};
  }
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const bool well_formed = version.size() == 8 && version.starts_with("HTTP/") && is_digit(version[5]) &&
                           version[6] == '.' && is_digit(version[7]);
  if (well_formed) return http_error{505, "only HTTP/1.0 and HTTP/1.1 are spoken here"};
  return http_error{400, "the request line does not end in an HTTP version"};
}

std::optional<http_error> read_authority(std::string_view text, std::uint16_t port, request_head& request) {
  auto parsed = parse_authority(text, port);
  if (const auto* wrong = std::get_if<malformed>(&parsed)) return http_error{400, wrong->why};
  request.to = std::move(std::get<destination>(parsed));
  return {};
}

std::optional<http_error> check_scheme(std::string_view scheme) {
  if (equal_ignoring_case(scheme, "http") || equal_ignoring_case(scheme, "ws")) return {};
  if (equal_ignoring_case(scheme, "https"))
    return http_error{400, "https:// is not fetched by the proxy: use CONNECT host:443"};
  if (equal_ignoring_case(scheme, "wss"))
    return http_error{400, "wss:// is not opened by the proxy: use CONNECT host:443"};
  if (equal_ignoring_case(scheme, "ftp"))
    return http_error{400, "ftp:// is not fetched by the proxy: use CONNECT host:port, or http://"};
  return http_error{400, "the scheme is not http:// or ws://: use CONNECT host:port for other protocols"};
}

std::optional<http_error> read_absolute_form(std::string_view target, request_head& request) {
  if (target.starts_with('/') || target == "*")
    return http_error{400, "this is a proxy: the request line must name the host, as in GET http://host/"};
  const auto colon = target.find("://");
  if (colon == target.npos) return http_error{400, "the request target is no absolute URI"};
  if (const auto wrong = check_scheme(target.substr(0, colon))) return wrong;
  if (target.find('#') != target.npos) return http_error{400, "the request target has a fragment"};

  const auto rest = target.substr(colon + 3);
  const auto end = std::min(rest.find_first_of("/?"), rest.size());
  const auto path = rest.substr(end);
  if (path.starts_with('?')) return http_error{400, "the request target has a query but no path"};
  if (!path.empty())
    request.origin_target = path;
  else
    request.origin_target = request.method == "OPTIONS" ? "*" : "/";
  return read_authority(rest.substr(0, end), default_port, request);
}

std::optional<http_error> read_request_line(std::string_view line, request_head& request) {
  const auto first = line.find(' ');
  const auto second = first == line.npos ? line.npos : line.find(' ', first + 1);
  if (second == line.npos) return http_error{400, "the request line is not METHOD TARGET VERSION"};
  const auto method = line.substr(0, first);
  const auto target = line.substr(first + 1, second - first - 1);
  if (!is_token(method)) return http_error{400, "the method is malformed"};
  if (const auto wrong = read_version(line.substr(second + 1), request)) return wrong;
  if (target.empty()) return http_error{400, "the request target is empty"};
  if (target.size() > max_target_bytes) return http_error{414, "the request target has more than 8 KiB"};
  if (!is_visible_ascii(target))
    return http_error{400, "the request target has a byte that must be percent-encoded"};

  request.method = method;
  request.connect = method == "CONNECT";
  // Whether a body follows the answer depends on these two, and not everybody minds their case.
  if ((equal_ignoring_case(method, "connect") && !request.connect) ||
      (equal_ignoring_case(method, "head") && method != "HEAD"))
    return http_error{400, "methods are written in upper case"};
  return request.connect ? read_authority(target, 0, request) : read_absolute_form(target, request);
}

std::optional<http_error> read_host(const field_section& section, const request_head& request) {
  std::size_t hosts = 0;
  for (const auto& line : section.lines) {
    if (line.what != kind::host) continue;
    if (++hosts > 1) return http_error{400, "there is more than one Host"};
    // Its value is not used, but who would read it differently must not get the chance to.
    if (const auto host = parse_authority(line.value, default_port); std::holds_alternative<malformed>(host))
      return http_error{400, "the Host field is malformed"};
  }
  // A CONNECT says it all in its request line, and small clients leave the rest out.
  if (hosts == 0 && request.minor_version == 1 && !request.connect)
    return http_error{400, "HTTP/1.1 needs a Host field"};
  return {};
}

std::optional<http_error> read_expect_and_authorization(const field_section& section, request_head& request) {
  for (const auto& line : section.lines) {
    if (line.what == kind::proxy_authorization) {
      if (request.proxy_authorization) return http_error{400, "there is more than one Proxy-Authorization"};
      request.proxy_authorization = std::string(line.value);
    } else if (line.what == kind::expect && request.minor_version >= 1) {  // HTTP/1.0 has none: ignored
      for (const auto element : list_elements(line.value))
        if (!equal_ignoring_case(element, "100-continue"))
          return http_error{417, "nothing but 100-continue can be expected"};
      request.expects_continue = true;
    }
  }
  return {};
}

std::optional<http_error> read_body_and_connection(const field_section& section, request_head& request) {
  if (!request.connect && section.chunked) request.body = body_kind::chunked;
  if (!request.connect && section.content_length) {
    request.body = body_kind::length;
    request.body_bytes = *section.content_length;
  }
  const bool has_body = section.chunked || request.body_bytes > 0;
  request.expects_continue &= has_body;
  request.keep_alive = !section.close && (request.minor_version == 1 || section.keep_alive);
  request.websocket = section.to_websocket && request.method == "GET";
  if (request.websocket && has_body) return http_error{400, "a request for a websocket has a body"};
  return {};
}

}  // namespace

std::variant<std::size_t, http_error> find_head_end(std::string_view bytes, std::size_t& scanned) {
  const auto limit = std::min(bytes.size(), max_head_bytes);
  for (; scanned < limit; ++scanned) {
    const auto at = scanned;
    const char c = bytes[at];
    const bool after_cr = at > 0 && bytes[at - 1] == '\r';
    if (after_cr && c != '\n') return http_error{400, "there is a CR without LF"};
    if (!is_control(c) || c == '\r') continue;
    if (c != '\n') return http_error{400, "there is a control byte"};
    if (!after_cr) return http_error{400, "there is an LF without CR"};
    const bool line_is_empty = at == 1 || bytes[at - 2] == '\n';
    if (!line_is_empty || at == 1) continue;
    if (at == 3) return http_error{400, "there is more than one empty line before the request"};
    ++scanned;
    return at + 1;
  }
  if (limit == max_head_bytes) return too_long(bytes.substr(0, limit));
  return std::size_t{0};
}

std::variant<request_head, http_error> parse_request_head(std::string_view head) {
  std::size_t scanned = 0;
  const auto found = find_head_end(head, scanned);
  if (const auto* wrong = std::get_if<http_error>(&found)) return *wrong;
  if (head.empty() || std::get<std::size_t>(found) != head.size())
    return http_error{400, "the head is not complete"};
  if (head.starts_with("\r\n")) head.remove_prefix(2);

  request_head request;
  const auto line_end = head.find("\r\n");
  if (const auto wrong = read_request_line(head.substr(0, line_end), request)) return *wrong;
  const auto field_lines = head.substr(line_end + 2, head.size() - line_end - 4);
  const auto parsed = parse_field_section(field_lines, request.minor_version);
  if (const auto* wrong = std::get_if<http_error>(&parsed)) return *wrong;
  const auto& section = std::get<field_section>(parsed);
  if (const auto wrong = read_host(section, request)) return *wrong;
  if (const auto wrong = read_expect_and_authorization(section, request)) return *wrong;
  if (const auto wrong = read_body_and_connection(section, request)) return *wrong;
  request.fields = section.forwarded();
  return request;
}

std::string write_request_head(const request_head& request) {
  assert(!request.connect);
  std::string out;
  out.append(request.method).append(" ").append(request.origin_target).append(" HTTP/1.1\r\n");
  append_field(out, "Host",
               request.to.port == default_port ? host_text(request.to) : authority_text(request.to));
  for (const auto& [name, value] : request.fields)
    append_field(out, name, value);
  if (request.body == body_kind::length)
    append_field(out, "Content-Length", std::to_string(request.body_bytes));
  else if (request.body == body_kind::chunked)
    append_field(out, "Transfer-Encoding", "chunked");
  if (request.expects_continue) append_field(out, "Expect", "100-continue");
  if (request.websocket) {
    append_field(out, "Connection", "upgrade");
    append_field(out, "Upgrade", "websocket");
  }
  return out.append("\r\n");
}

}  // namespace ccbox::egress
