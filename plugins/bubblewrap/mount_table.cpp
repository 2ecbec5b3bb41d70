#include "mount_table.hpp"

#include <algorithm>
#include <utility>

#include "paths.hpp"

namespace ccbox::bubblewrap {

entry& mount_table::put(entry e) {
  e.sequence = sequence_++;
  auto place = e.guest;
  return entries_.insert_or_assign(std::move(place), std::move(e)).first->second;
}

entry* mount_table::at(std::string_view guest) {
  const auto found = entries_.find(guest);
  return found == entries_.end() ? nullptr : &found->second;
}

entry* mount_table::over(std::string_view guest) {
  auto* found = at(guest);
  return found ? found : above(guest);
}

entry* mount_table::above(std::string_view guest) {
  while (guest != "/") {
    const auto slash = guest.rfind('/');
    guest = slash == 0 ? "/" : guest.substr(0, slash);
    if (auto* found = at(guest)) return found;
  }
  return nullptr;
}

bool mount_table::any_below(std::string_view guest) const {
  const auto prefix = guest == "/" ? std::string("/") : std::string(guest) + "/";
  auto next = entries_.lower_bound(prefix);
  if (next != entries_.end() && next->first == "/") ++next;
  return next != entries_.end() && next->first.compare(0, prefix.size(), prefix) == 0;
}

std::vector<entry*> mount_table::by_depth() {
  std::vector<entry*> all;
  all.reserve(entries_.size());
  for (auto& [guest, one] : entries_)
    all.push_back(&one);
  std::sort(all.begin(), all.end(), [](const entry* a, const entry* b) {
    const auto left = depth(a->guest), right = depth(b->guest);
    return left != right ? left < right : a->sequence < b->sequence;
  });
  return all;
}

}  // namespace ccbox::bubblewrap
