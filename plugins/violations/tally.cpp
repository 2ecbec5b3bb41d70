#include "tally.hpp"

namespace ccbox::violations {

void tally::add(const plugin::violation& what, clock::time_point now, plugin::monitor_sink& sink) {
  auto key = std::make_pair(std::string(what.action), std::string(what.target));
  const auto known = kinds_.find(key);
  if (known != kinds_.end() && now - known->second.told < forgotten_after) {
    known->second.count += what.count;
    return;
  }
  if (known == kinds_.end() && !make_room(now)) {
    others_ += what.count;
    return;
  }
  auto& fresh = known != kinds_.end() ? known->second : kinds_[std::move(key)];
  auto told = what;
  told.count += fresh.count;
  fresh.count = 0;
  fresh.exec_id = what.exec_id;
  fresh.capability = what.suggested_capability;
  fresh.raw = what.raw.size() <= most_raw_bytes ? std::string(what.raw) : std::string();
  fresh.told = now;
  sink.add(told);
}

bool tally::make_room(clock::time_point now) {
  if (kinds_.size() < most_kinds) return true;
  for (auto at = kinds_.begin(); at != kinds_.end();) {
    const bool forgotten = at->second.count == 0 && now - at->second.told >= forgotten_after;
    at = forgotten ? kinds_.erase(at) : std::next(at);
  }
  return kinds_.size() < most_kinds;
}

void tally::flush(clock::time_point now, plugin::monitor_sink& sink) {
  for (auto& [key, each] : kinds_) {
    if (each.count == 0) continue;
    sink.add({each.exec_id, each.count, key.first, key.second, each.capability, each.raw});
    each.count = 0;
    each.told = now;
  }
  if (others_ > 0) sink.add({0, others_, "*", "*", {}, {}});
  others_ = 0;
}

}  // namespace ccbox::violations
