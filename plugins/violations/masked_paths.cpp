#include "masked_paths.hpp"

namespace ccbox::violations {

masked_paths::masked_paths(const plugin::monitor_request& request) : workdir_(request.workdir()) {
  request.each_rule([&](const plugin::rule& rule) {
    if (rule.kind != CCBOX_KIND_READ_DENY || !request.is_enforced(rule) || rule.guest_path.empty()) return;
    if (!rule.has(CCBOX_RULE_EXISTS) || rule.has(CCBOX_RULE_GLOB)) return;
    masks_.push_back({std::string(rule.guest_path), std::string(rule.path), std::string(rule.reason)});
  });
}

const masked_paths::mask* masked_paths::find(std::string_view path) const {
  const mask* best = nullptr;
  for (const auto& each : masks_) {
    const bool covers =
        path.starts_with(each.path) && (path.size() == each.path.size() || path[each.path.size()] == '/');
    if (covers && (!best || each.path.size() > best->path.size())) best = &each;
  }
  return best;
}

std::string masked_paths::absolute(std::string_view path) const {
  std::string whole = path.starts_with('/') ? std::string() : workdir_ + "/";
  whole += path;
  std::string out;
  for (std::string_view rest = whole; !rest.empty();) {
    const auto slash = rest.find('/');
    const auto name = rest.substr(0, slash);
    rest = slash == rest.npos ? std::string_view() : rest.substr(slash + 1);
    if (name.empty() || name == ".") continue;
    if (name == "..")
      out.resize(out.empty() ? 0 : out.rfind('/'));
    else
      (out += '/') += name;
  }
  return out.empty() ? "/" : out;
}

}  // namespace ccbox::violations
