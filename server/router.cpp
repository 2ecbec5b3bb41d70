#include "router.hpp"

#include <algorithm>

namespace ccbox::server {

namespace {

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

error malformed(std::string_view target, const char* why) {
  return {error_code::invalid_argument, "the request target " + quoted(target.substr(0, 200)) + " " + why,
          ""};
}

// No NUL, and UTF-8: whatever stands there may end in a message or a log line.
result<std::string> decoded(std::string_view text, bool is_query, std::string_view target) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && is_query) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const int high = i + 2 < text.size() ? digit_of(text[i + 1]) : -1;
      const int low = high >= 0 ? digit_of(text[i + 2]) : -1;
      if (low < 0) return malformed(target, "has a % that no two hexadecimal digits follow");
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  if (out.find('\0') != std::string::npos) return malformed(target, "has a NUL byte");
  if (!is_utf8(out)) return malformed(target, "is not UTF-8");
  return out;
}

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> out;
  while (true) {
    const auto at = text.find(by);
    out.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at + 1);
  }
}

bool fits(std::string_view pattern, const std::vector<std::string>& parts,
          std::map<std::string, std::string>& captured) {
  const auto expected = split(pattern.substr(1), '/');
  if (expected.size() != parts.size()) return false;
  captured.clear();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool any = expected[i].starts_with('{');
    if (any && parts[i].empty()) return false;
    if (any) captured.emplace(expected[i].substr(1, expected[i].size() - 2), parts[i]);
    if (!any && expected[i] != parts[i]) return false;
  }
  return true;
}

result<std::map<std::string, std::string>> query_of(std::string_view text, std::string_view target) {
  std::map<std::string, std::string> out;
  if (text.empty()) return out;
  for (const auto word : split(text, '&')) {
    const auto equals = word.find('=');
    auto name = decoded(word.substr(0, equals), true, target);
    if (!name) return name.error();
    auto value = decoded(equals == std::string_view::npos ? "" : word.substr(equals + 1), true, target);
    if (!value) return value.error();
    if (!out.emplace(std::move(*name), std::move(*value)).second)
      return malformed(target, "has a parameter twice");
  }
  return out;
}

}  // namespace

void router::add(std::string method, std::string pattern, request_handler handler) {
  routes_.push_back({std::move(method), std::move(pattern), std::move(handler), {}});
}

void router::add_socket(std::string pattern, upgrade_handler handler) {
  routes_.push_back({"GET", std::move(pattern), {}, std::move(handler)});
}

result<router::match> router::find(std::string_view method, std::string_view target) const {
  if (!target.starts_with('/')) return malformed(target, "does not begin with /");
  const auto question = target.find('?');
  match out;
  out.request.method = method;
  std::vector<std::string> parts;
  // Split first: a %2F is a part of a name, not the end of one.
  for (const auto part :
       split(target.substr(1, question == std::string_view::npos ? question : question - 1), '/')) {
    auto text = decoded(part, false, target);
    if (!text) return text.error();
    out.request.path += "/" + *text;
    parts.push_back(std::move(*text));
  }
  if (question != std::string_view::npos) {
    auto query = query_of(target.substr(question + 1), target);
    if (!query) return query.error();
    out.request.query = std::move(*query);
  }
  for (const route& each : routes_) {
    if (!fits(each.pattern, parts, out.request.captured)) continue;
    if (each.method == method) {
      out.found = &each;
      out.allowed.clear();
      return out;
    }
    if (std::find(out.allowed.begin(), out.allowed.end(), each.method) == out.allowed.end())
      out.allowed.push_back(each.method);
  }
  if (out.allowed.empty())
    return error{error_code::not_found, "there is no " + quoted(out.request.path.substr(0, 200)) + " here",
                 "docs/openapi.json lists what there is"};
  return out;
}

}  // namespace ccbox::server
