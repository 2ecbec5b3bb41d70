#include "plugins/egress/response_head.hpp"

#include <algorithm>

#include "fuzz/target.hpp"

namespace {

using namespace ccbox::egress;
using framing = response_head::framing;

// The first byte chooses what was asked for.
request_head asked(unsigned char choice) {
  request_head request;
  request.to = {"a.test", 80};
  request.origin_target = "/";
  request.minor_version = choice & 1;
  request.websocket = choice & 2;
  request.connect = choice & 4;
  request.method = request.connect ? "CONNECT" : choice & 8 ? "HEAD" : "GET";
  return request;
}

void check_written(const response_head& response, const request_head& request, bool close) {
  const auto written = write_response_head(response, request, close);
  std::size_t scanned = 0;
  const auto found = find_response_head_end(written, scanned);
  // What we add may take a head that just fitted over the limits.
  if (written.size() <= max_head_bytes)
    fuzz::require(
        std::holds_alternative<std::size_t>(found) && std::get<std::size_t>(found) == written.size(),
        "a written head is one head");
  const auto parsed = parse_response_head(written, request);
  if (std::holds_alternative<http_error>(parsed)) {
    fuzz::require(written.size() > max_head_bytes || response.fields.size() + 2 > max_fields,
                  "a written head parses, unless it grew too long");
    return;
  }
  const auto& second = std::get<response_head>(parsed);
  fuzz::require(second.status == response.status && second.reason == response.reason &&
                    second.fields == response.fields && second.switches == response.switches,
                "a written head parses to the same answer");
  const bool unchunked = response.body == framing::chunked && request.minor_version == 0;
  fuzz::require(second.body == (unchunked ? framing::until_close : response.body) &&
                    second.body_bytes == response.body_bytes &&
                    second.announced_bytes == response.announced_bytes,
                "a written head frames the same body");
  fuzz::require(write_response_head(second, request, close) == written, "writing is a fixed point");
}

void check_response(const response_head& response, const request_head& request) {
  fuzz::require(response.status >= 100 && response.status <= 999, "a status has three digits");
  const bool bodiless = response.status < 200 || response.status == 204 || response.status == 304 ||
                        request.method == "HEAD" || (request.connect && response.status < 300);
  fuzz::require(!bodiless || response.body == framing::none, "some answers never have a body");
  fuzz::require(response.switches == (response.status == 101), "101 switches");
  fuzz::require(!response.switches || request.websocket, "nobody switches who did not ask for it");
  fuzz::require(response.body != framing::until_close || !response.keep_alive,
                "a closed connection is not kept");
  for (const auto& [name, value] : response.fields)
    fuzz::require(is_token(name) && is_field_text(value), "fields are well-formed");
  for (const bool close : {false, true})
    check_written(response, request, close);
}

void run(std::string_view input) {
  if (input.empty()) return;
  const auto request = asked(static_cast<unsigned char>(input[0]));
  input.remove_prefix(1);

  std::size_t scanned = 0, scanned_in_pieces = 0;
  const auto found = find_response_head_end(input, scanned);
  std::variant<std::size_t, http_error> in_pieces = std::size_t{0};
  for (std::size_t size = 0; size <= input.size(); ++size) {
    in_pieces = find_response_head_end(input.substr(0, size), scanned_in_pieces);
    if (std::holds_alternative<http_error>(in_pieces) || std::get<std::size_t>(in_pieces) != 0) break;
  }
  fuzz::require(found.index() == in_pieces.index(), "how bytes arrive does not matter");
  if (const auto* wrong = std::get_if<http_error>(&found)) {
    fuzz::require(wrong->status == 502 && !wrong->why.empty(), "a refusal is a 502 that says why");
    fuzz::require(wrong->why == std::get<http_error>(in_pieces).why, "how bytes arrive does not matter");
    fuzz::require(std::holds_alternative<http_error>(parse_response_head(input, request)),
                  "what is no head does not parse");
    return;
  }
  const auto size = std::get<std::size_t>(found);
  fuzz::require(size == std::get<std::size_t>(in_pieces), "how bytes arrive does not matter");
  if (size == 0) return;
  const auto parsed = parse_response_head(input.substr(0, size), request);
  if (const auto* wrong = std::get_if<http_error>(&parsed))
    fuzz::require(wrong->status == 502 && !wrong->why.empty(), "a refusal is a 502 that says why");
  else
    check_response(std::get<response_head>(parsed), request);
}

const fuzz::registered target("response_head", run);

}  // namespace
