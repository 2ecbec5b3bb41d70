#include "name_cache.hpp"

#include <algorithm>

#include "this_host.hpp"

namespace ccbox::egress {
namespace {

lookup_result this_host() {
  const auto both = this_host_addresses();
  return {lookup_result::status::found, {both.begin(), both.end()}, std::chrono::seconds(1)};
}

}  // namespace

struct name_cache::question {
  question(deadline_queue& deadlines, std::string n, std::function<void()> too_late)
      : name(std::move(n)), limit(deadlines, std::move(too_late)) {}
  const std::string name;
  std::vector<answer> waiting;
  deadline limit;  // from when it was asked for, the queue's time included
  std::unique_ptr<lookup> asked;
  clock::time_point started;
};

name_cache::name_cache(worker& where, resolver& resolver, std::chrono::milliseconds limit,
                       std::size_t most_lookups, counters& count)
    : worker_(where), resolver_(resolver), limit_(limit), most_lookups_(most_lookups), counters_(count) {}

name_cache::~name_cache() {
  shut();
}

void name_cache::find(const std::string& name, answer to) {
  if (shut_) return to.set({});
  if (is_this_host(name)) return to.set(this_host());
  const auto found = known_.find(name);
  if (found != known_.end()) {
    if (clock::now() < found->second.until) return to.set(found->second.result);
    known_.erase(found);
  }
  auto& q = questions_[name];
  if (q) {
    q->waiting.push_back(std::move(to));
    return;
  }
  q = std::make_shared<question>(worker_.deadlines(), name, [this, name] {
    finish(name, {lookup_result::status::timed_out, {}, {}});
  });
  q->waiting.push_back(std::move(to));
  q->limit.after(limit_);
  if (under_way_ < most_lookups_)
    begin(q);
  else
    queue_.push_back(name);
}

void name_cache::begin(const std::shared_ptr<question>& q) {
  ++under_way_;
  q->started = clock::now();
  q->asked = resolver_.resolve(worker_.context(), q->name, [this, name = q->name](lookup_result result) {
    finish(name, std::move(result));
  });
}

void name_cache::finish(const std::string& name, lookup_result result) {
  const auto at = questions_.find(name);
  if (at == questions_.end()) return;
  const auto q = at->second;
  questions_.erase(at);
  if (q->asked) {
    --under_way_;
    counters_.looked_up(std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - q->started));
  }
  if (result.what == lookup_result::status::found && result.addresses.empty())
    result.what = lookup_result::status::failed;
  remember(name, result);
  for (auto& to : q->waiting)
    to.set(result);
  while (under_way_ < most_lookups_ && !queue_.empty()) {
    const auto next = questions_.find(queue_.front());
    queue_.pop_front();
    if (next != questions_.end() && !next->second->asked) begin(next->second);
  }
}

void name_cache::remember(const std::string& name, const lookup_result& result) {
  const auto now = clock::now();
  auto keep = std::chrono::seconds(longest_negative);
  if (result.what == lookup_result::status::found) keep = std::min(result.ttl, longest);
  if (keep.count() <= 0) return;
  if (known_.size() >= most_entries)
    std::erase_if(known_, [now](const auto& entry) { return entry.second.until <= now; });
  if (known_.size() >= most_entries) known_.erase(known_.begin());
  known_[name] = {result, now + keep};
}

void name_cache::shut() {
  shut_ = true;
  queue_.clear();
  const auto open = std::move(questions_);
  questions_.clear();
  for (const auto& [name, q] : open)
    for (auto& to : q->waiting)
      to.set({});
}

}  // namespace ccbox::egress
