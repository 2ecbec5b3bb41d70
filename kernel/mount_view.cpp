#include "mount_view.hpp"

namespace ccbox {

namespace {

const rule* find_over(const std::map<std::string, const rule*, std::less<>>& mounts, std::string_view guest) {
  for (;; guest = parent_path(guest)) {
    if (const auto found = mounts.find(guest); found != mounts.end()) return found->second;
    if (guest == "/") return nullptr;
  }
}

}  // namespace

mount_view::mount_view(const std::vector<rule>& rules) {
  for (const auto& r : rules) {
    if (r.kind != rule_kind::mount) continue;
    by_guest_.insert_or_assign(r.guest_path, &r);
    if (r.type != path_type::symlink) by_host_.emplace(r.path, &r);
  }
}

const rule* mount_view::over(std::string_view guest) const {
  return find_over(by_guest_, guest);
}

const rule* mount_view::around(const rule& mount) const {
  if (mount.guest_path == "/") return nullptr;
  return find_over(by_guest_, parent_path(mount.guest_path));
}

std::optional<std::string> mount_view::host_path(std::string_view guest) const {
  const auto* mount = over(guest);
  if (!mount) return std::nullopt;
  return join_path(mount->path, path_below(guest, mount->guest_path));
}

std::vector<mount_view::place> mount_view::places_of(std::string_view host) const {
  std::vector<place> out;
  for (std::string_view above = host;; above = parent_path(above)) {
    const auto [first, last] = by_host_.equal_range(above);
    for (auto at = first; at != last; ++at) {
      std::string guest = join_path(at->second->guest_path, path_below(host, above));
      if (over(guest) == at->second) out.push_back({std::move(guest), at->second});
    }
    if (above == "/") return out;
  }
}

}  // namespace ccbox
