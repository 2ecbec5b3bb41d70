#include "broker_orders.hpp"

#include "ccbox/floor.hpp"

namespace ccbox::bubblewrap {

namespace {

using floor_detail::put;
using floor_detail::take;

void put_count(std::string& out, std::size_t count) {
  put(out, static_cast<std::uint32_t>(count));
}

// Resizes to a count that the bytes left could hold.
template <class List>
bool take_count(std::string_view& from, List& list) {
  std::uint32_t count = 0;
  if (!take(from, count) || count > from.size() / 4) return false;
  list.resize(count);
  return true;
}

bool take_anchor(std::string_view& from, name_anchor& anchor) {
  if (!take(from, anchor.guest) || !take_count(from, anchor.deny)) return false;
  for (auto& rule : anchor.deny) {
    std::uint32_t when = 0;
    if (!take(from, rule.glob) || !take(from, rule.reason) || !take(from, when)) return false;
    if (when > static_cast<std::uint32_t>(name_rule::condition::is_new)) return false;
    rule.when = static_cast<name_rule::condition>(when);
  }
  return take(from, anchor.exempt);
}

}  // namespace

std::string encode(const broker_orders& orders) {
  std::string out;
  put_count(out, orders.open.size());
  for (const auto& path : orders.open)
    put(out, path);
  put_count(out, orders.mounts.size());
  for (const auto& mount : orders.mounts) {
    put(out, mount.guest);
    put(out, mount.host);
  }
  put_count(out, orders.anchors.size());
  for (const auto& anchor : orders.anchors) {
    put(out, anchor.guest);
    put_count(out, anchor.deny.size());
    for (const auto& rule : anchor.deny) {
      put(out, rule.glob);
      put(out, rule.reason);
      put(out, static_cast<std::uint32_t>(rule.when));
    }
    put_count(out, anchor.exempt.size());
    for (const auto& glob : anchor.exempt)
      put(out, glob);
  }
  return out;
}

std::optional<broker_orders> decode_broker_orders(std::string_view bytes) {
  broker_orders orders;
  if (!take(bytes, orders.open) || !take_count(bytes, orders.mounts)) return std::nullopt;
  for (auto& mount : orders.mounts)
    if (!take(bytes, mount.guest) || !take(bytes, mount.host)) return std::nullopt;
  if (!take_count(bytes, orders.anchors)) return std::nullopt;
  for (auto& anchor : orders.anchors)
    if (!take_anchor(bytes, anchor)) return std::nullopt;
  if (!bytes.empty()) return std::nullopt;
  return orders;
}

}  // namespace ccbox::bubblewrap
