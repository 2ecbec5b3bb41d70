#include "paths.hpp"

#include <algorithm>

namespace ccbox::bubblewrap {

std::optional<std::string> normal_path(std::string_view path) {
  if (path.empty() || path.front() != '/' || path.find('\0') != path.npos) return std::nullopt;
  std::string out;
  while (!path.empty()) {
    const auto slash = std::min(path.find('/'), path.size());
    const auto component = path.substr(0, slash);
    if (component == "..") return std::nullopt;
    if (!component.empty() && component != ".") out.append("/").append(component);
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return out.empty() ? "/" : out;
}

bool covers(std::string_view root, std::string_view path) {
  if (root == "/") return true;
  return path.substr(0, root.size()) == root && (path.size() == root.size() || path[root.size()] == '/');
}

std::string parent(std::string_view path) {
  const auto slash = path.rfind('/');
  return std::string(slash == 0 ? "/" : path.substr(0, slash));
}

std::size_t depth(std::string_view path) {
  return path == "/" ? 0 : static_cast<std::size_t>(std::count(path.begin(), path.end(), '/'));
}

std::string rebase(std::string_view path, std::string_view from, std::string_view to) {
  auto rest = from == "/" ? path : path.substr(from.size());
  if (rest == "/") rest = {};
  if (rest.empty()) return std::string(to);
  std::string out(to == "/" ? std::string_view{} : to);
  return out.append(rest);
}

std::string shown(std::string_view path) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out = "'";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\'' || c == '\\')
      out.append("\\").push_back(c);
    else if (c == '\n')
      out.append("\\n");
    else if (byte < 0x20 || byte >= 0x7f)
      out.append("\\x").append({digits[byte >> 4], digits[byte & 15]});
    else
      out.push_back(c);
  }
  return out.append("'");
}

}  // namespace ccbox::bubblewrap
