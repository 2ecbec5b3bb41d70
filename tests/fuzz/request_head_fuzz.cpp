#include "plugins/egress/request_head.hpp"

#include <algorithm>

#include "fuzz/target.hpp"

namespace {

using namespace ccbox::egress;

std::variant<std::size_t, http_error> find_in_pieces(std::string_view bytes, std::size_t piece) {
  std::size_t scanned = 0;
  for (std::size_t size = std::min(piece, bytes.size());; size = std::min(size + piece, bytes.size())) {
    const auto found = find_head_end(bytes.substr(0, size), scanned);
    const auto* bytes_found = std::get_if<std::size_t>(&found);
    if (!bytes_found || *bytes_found != 0 || size == bytes.size()) return found;
  }
}

bool same(const std::variant<std::size_t, http_error>& a, const std::variant<std::size_t, http_error>& b) {
  if (a.index() != b.index()) return false;
  if (const auto* size = std::get_if<std::size_t>(&a)) return *size == std::get<std::size_t>(b);
  return std::get<http_error>(a).status == std::get<http_error>(b).status &&
         std::get<http_error>(a).why == std::get<http_error>(b).why;
}

void check_lines(std::string_view head) {
  for (std::size_t i = 0; i < head.size(); ++i) {
    const auto byte = static_cast<unsigned char>(head[i]);
    fuzz::require(byte >= 0x20 || byte == '\t' || byte == '\r' || byte == '\n',
                  "no control byte is in a head");
    if (byte == '\n') fuzz::require(i > 0 && head[i - 1] == '\r', "no LF comes without CR");
    if (byte == '\r') fuzz::require(i + 1 < head.size() && head[i + 1] == '\n', "no CR comes without LF");
  }
  fuzz::require(head.ends_with("\r\n\r\n"), "a head ends in an empty line");
  const auto first = head.starts_with("\r\n") ? head.substr(2) : head;
  fuzz::require(first.find("\r\n\r\n") + 4 == first.size(), "a head ends at its first empty line");
}

// How a careless reader would count the lines of that name.
std::size_t count(std::string_view head, std::string_view name) {
  std::string lower(head);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  std::size_t found = 0;
  for (auto at = lower.find(name); at != lower.npos; at = lower.find(name, at + 1))
    ++found;
  return found;
}

void check_written(const request_head& request) {
  const auto written = write_request_head(request);
  check_lines(written);
  fuzz::require(count(written, "\r\nhost:") == 1, "a written head has one Host");
  fuzz::require(count(written, "\r\ncontent-length:") == (request.body == body_kind::length ? 1u : 0u),
                "a written head has a Content-Length when it has a length");
  fuzz::require(count(written, "\r\ntransfer-encoding:") == (request.body == body_kind::chunked ? 1u : 0u),
                "a written head has a Transfer-Encoding when it is chunked");
  for (const auto* name : {"\r\nproxy-authorization:", "\r\nproxy-connection:", "\r\nte:", "\r\nkeep-alive:"})
    fuzz::require(count(written, name) == 0, "what is between neighbours only is not forwarded");

  // The same as a client would have written it to a proxy.
  auto again = written;
  const auto path = request.origin_target == "*" ? std::string() : request.origin_target;
  again.replace(request.method.size() + 1, request.origin_target.size(),
                "http://" + authority_text(request.to) + path);
  const auto parsed = parse_request_head(again);
  if (const auto* wrong = std::get_if<http_error>(&parsed)) {
    fuzz::require(wrong->status == 431 || wrong->status == 414,
                  "a written head parses, unless it grew too long");
    return;
  }
  const auto& second = std::get<request_head>(parsed);
  fuzz::require(second.to == request.to && second.fields == request.fields && second.body == request.body &&
                    second.body_bytes == request.body_bytes && second.websocket == request.websocket &&
                    second.expects_continue == request.expects_continue,
                "a written head parses to the same request");
  fuzz::require(write_request_head(second) == written, "writing is a fixed point");
}

void check_request(const request_head& request) {
  fuzz::require(is_token(request.method), "a method is a token");
  fuzz::require(request.minor_version <= 1, "a version is 1.0 or 1.1");
  fuzz::require(request.connect == (request.method == "CONNECT"), "CONNECT is the method that connects");
  fuzz::require(request.to.port != 0, "no port is 0");
  const auto to = parse_authority(authority_text(request.to), 0);
  fuzz::require(std::holds_alternative<destination>(to) && std::get<destination>(to) == request.to,
                "a destination is canonical");
  fuzz::require(request.fields.size() <= max_fields, "there are not more fields than the limit");
  for (const auto& [name, value] : request.fields)
    fuzz::require(is_token(name) && is_field_text(value), "fields are well-formed");
  if (request.connect)
    fuzz::require(request.body == body_kind::none, "a CONNECT has no body");
  else
    check_written(request);
}

void run(std::string_view input) {
  std::size_t scanned = 0;
  const auto found = find_head_end(input, scanned);
  for (const std::size_t piece : {1, 2, 7})
    fuzz::require(same(found, find_in_pieces(input, piece)), "how bytes arrive does not matter");

  const auto* size = std::get_if<std::size_t>(&found);
  const auto parsed = parse_request_head(input);
  if (std::holds_alternative<request_head>(parsed))
    fuzz::require(size && *size == input.size(), "only what was found to be a head is one");
  if (!size || *size == 0) return;
  fuzz::require(*size <= max_head_bytes, "a head keeps its limit");
  const auto head = input.substr(0, *size);
  check_lines(head);
  const auto request = parse_request_head(head);
  if (const auto* wrong = std::get_if<http_error>(&request)) {
    fuzz::require(wrong->status >= 400 && wrong->status <= 505 && !wrong->why.empty(), "a refusal says why");
    return;
  }
  check_request(std::get<request_head>(request));
}

const fuzz::registered target("request_head", run);

}  // namespace
