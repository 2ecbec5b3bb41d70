#include "environment.hpp"

#include <algorithm>

#include "glob.hpp"
#include "result.hpp"

namespace ccbox {

namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_identifier(std::string_view name) {
  if (name.empty() || !is_letter(name.front())) return false;
  return std::all_of(name.begin(), name.end(), [](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

// The pattern of `patterns` that catches `name`, or null.
const std::string* find_pattern(const std::vector<std::string>& patterns, std::string_view name, bool fold) {
  for (const auto& pattern : patterns)
    if (wildcard_match(pattern, name, fold)) return &pattern;
  return nullptr;
}

// Why the deny fence stops it; empty: it does not. Never says anything of the value.
std::string fence(const std::string& name, const std::string& value, const environment_config& config) {
  if (name.empty()) return "it has no name";
  if (!is_identifier(name)) return "its name is no identifier";
  if (value.find('\0') != std::string::npos) return "its value contains a NUL byte";
  if (const auto* pattern = find_pattern(config.deny, name, true)) return "deny list: " + *pattern;
  return {};
}

std::string secret(const std::string& name, const std::string& value, const environment_config& config) {
  const std::string folded = upper(name);
  for (const auto& part : config.secret_names)
    if (folded.find(upper(part)) != std::string::npos) return "its name says it is a secret: " + part;
  if (find_pattern(config.secret_values, value, false)) return "its value looks like a secret";
  return {};
}

void note(std::vector<dropped_variable>* dropped, const std::string& name, std::string reason) {
  if (dropped) dropped->push_back({is_identifier(name) ? name : quoted(name), std::move(reason)});
}

}  // namespace

environment sanitise_environment(const environment& host, const environment_config& config,
                                 std::vector<dropped_variable>* dropped) {
  environment kept;
  for (const auto& [name, value] : host) {
    const bool listed = find_pattern(config.allow, name, false);
    if (!listed && !dropped) continue;
    std::string reason = fence(name, value, config);
    if (reason.empty() && !listed) reason = "not on the allow-list";
    if (reason.empty()) reason = secret(name, value, config);
    if (reason.empty())
      kept.emplace(name, value);
    else
      note(dropped, name, std::move(reason));
  }
  return kept;
}

environment strip_injection(const environment& host, const environment_config& config,
                            std::vector<dropped_variable>* dropped) {
  environment kept;
  for (const auto& [name, value] : host) {
    std::string reason = fence(name, value, config);
    if (reason.empty())
      kept.emplace(name, value);
    else
      note(dropped, name, std::move(reason));
  }
  return kept;
}

}  // namespace ccbox
