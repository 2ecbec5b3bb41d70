#include "response_head.hpp"

namespace ccbox::egress {
namespace {

using framing = response_head::framing;

http_error bad_gateway(std::string_view why) {
  return {502, why};
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// HTTP/1.x SP 3DIGIT SP reason; servers that have no reason to give tend to leave out its space too.
std::optional<http_error> read_status_line(std::string_view line, response_head& response) {
  if (!line.starts_with("HTTP/1.1 ") && !line.starts_with("HTTP/1.0 "))
    return bad_gateway("the origin's answer is neither HTTP/1.0 nor HTTP/1.1");
  response.minor_version = line[7] == '1' ? 1 : 0;
  line.remove_prefix(9);
  const bool has_status = line.size() >= 3 && line[0] >= '1' && is_digit(line[0]) && is_digit(line[1]) &&
                          is_digit(line[2]) && (line.size() == 3 || line[3] == ' ');
  if (!has_status) return bad_gateway("the origin's status line is malformed");
  response.status = static_cast<unsigned>((line[0] - '0') * 100 + (line[1] - '0') * 10 + (line[2] - '0'));
  if (line.size() > 4) response.reason = line.substr(4);
  return {};
}

bool is_interim(const response_head& response) {
  return response.status < 200;
}

std::optional<http_error> read_interim(const field_section& section, const request_head& request,
                                       response_head& response) {
  if (section.chunked || section.content_length.value_or(0) > 0)
    return bad_gateway("the origin's interim answer has a body");
  if (response.minor_version == 0) return bad_gateway("the origin sent an interim answer in HTTP/1.0");
  response.keep_alive = true;
  if (response.status != 101) return {};
  if (!request.websocket || !section.to_websocket)
    return bad_gateway("the origin switches to a protocol that was not asked for");
  response.switches = true;
  response.keep_alive = false;
  return {};
}

void read_body(const field_section& section, const request_head& request, response_head& response) {
  response.keep_alive = !section.close && (response.minor_version == 1 || section.keep_alive);
  if (request.connect && response.status < 300) return;  // the tunnel begins, whatever the fields say
  if (response.status == 204 || response.status == 304) {
    const bool speaks_of_body =
        section.chunked || (response.status == 204 && section.content_length.value_or(0) > 0);
    if (speaks_of_body) response.keep_alive = false;
    if (response.status == 304) response.announced_bytes = section.content_length;
  } else if (request.method == "HEAD") {
    response.announced_bytes = section.content_length;
  } else if (section.chunked) {
    response.body = framing::chunked;
  } else if (section.content_length) {
    response.body = framing::length;
    response.body_bytes = *section.content_length;
  } else {
    response.body = framing::until_close;
    response.keep_alive = false;
  }
}

}  // namespace

std::variant<std::size_t, http_error> find_response_head_end(std::string_view bytes, std::size_t& scanned) {
  if (bytes.starts_with('\r') || bytes.starts_with('\n'))
    return bad_gateway("the origin's answer begins with an empty line");
  auto found = find_head_end(bytes, scanned);
  if (auto* wrong = std::get_if<http_error>(&found)) wrong->status = 502;
  return found;
}

std::variant<response_head, http_error> parse_response_head(std::string_view head,
                                                            const request_head& request) {
  std::size_t scanned = 0;
  const auto found = find_response_head_end(head, scanned);
  if (const auto* wrong = std::get_if<http_error>(&found)) return *wrong;
  if (head.empty() || std::get<std::size_t>(found) != head.size())
    return bad_gateway("the origin's head is not complete");

  response_head response;
  const auto line_end = head.find("\r\n");
  if (const auto wrong = read_status_line(head.substr(0, line_end), response)) return *wrong;
  const auto field_lines = head.substr(line_end + 2, head.size() - line_end - 4);
  const auto parsed = parse_field_section(field_lines, response.minor_version);
  if (const auto* wrong = std::get_if<http_error>(&parsed)) return bad_gateway(wrong->why);
  const auto& section = std::get<field_section>(parsed);
  if (is_interim(response)) {
    if (const auto wrong = read_interim(section, request, response)) return *wrong;
  } else {
    read_body(section, request, response);
  }
  response.fields = section.forwarded();
  return response;
}

bool ends_by_close(const response_head& response, const request_head& request) {
  return response.body == framing::until_close ||
         (response.body == framing::chunked && request.minor_version == 0);
}

std::string write_response_head(const response_head& response, const request_head& request, bool close) {
  std::string out;
  out.append("HTTP/1.1 ").append(std::to_string(response.status)).append(" ").append(response.reason);
  out.append("\r\n");
  for (const auto& [name, value] : response.fields)
    append_field(out, name, value);
  if (response.switches) {
    append_field(out, "Connection", "upgrade");
    append_field(out, "Upgrade", "websocket");
  }
  if (is_interim(response)) return out.append("\r\n");

  if (response.body == framing::length)
    append_field(out, "Content-Length", std::to_string(response.body_bytes));
  else if (response.announced_bytes)
    append_field(out, "Content-Length", std::to_string(*response.announced_bytes));
  else if (response.body == framing::chunked && request.minor_version == 1)
    append_field(out, "Transfer-Encoding", "chunked");
  if (close || ends_by_close(response, request))
    append_field(out, "Connection", "close");
  else if (request.minor_version == 0)
    append_field(out, "Connection", "keep-alive");
  return out.append("\r\n");
}

}  // namespace ccbox::egress
