#include "denial_report.hpp"

#include <algorithm>
#include <iterator>

#include "json_text.hpp"

namespace ccbox::egress {

denial_report::denial_report(deadline_queue& deadlines, std::chrono::milliseconds window,
                             std::function<void(const std::string&)> emit)
    : window_(window), emit_(std::move(emit)), timer_(deadlines, [this] { window_ends(); }) {
  others_.what.protocol = "any";
  others_.what.reason = "others";
}

void denial_report::add(denial what) {
  if (!ticking_) {
    ticking_ = true;
    timer_.after(window_);
  }
  what.host.resize(std::min(what.host.size(), most_host_bytes));
  kind key(what.host, what.port, what.reason);
  const auto known = kinds_.find(key);
  if (known != kinds_.end()) {
    ++known->second.count;
    return;
  }
  if (kinds_.size() >= most_kinds) {
    ++others_.count;
    return;
  }
  auto& fresh = kinds_[std::move(key)];
  fresh.what = std::move(what);
  fresh.count = 1;
  report(fresh);
}

void denial_report::report(tally& t) {
  const auto& d = t.what;
  json_object json;
  json.text("protocol", d.protocol).text("host", d.host).number("port", d.port).text("reason", d.reason);
  json.text("rule", d.rule).text("origin", d.origin).number("count", t.count);
  t.count = 0;
  t.quiet_windows = 0;
  emit_(json.str());
}

void denial_report::flush() {
  for (auto& [key, t] : kinds_)
    if (t.count > 0) report(t);
  if (others_.count > 0) report(others_);
}

void denial_report::window_ends() {
  for (auto at = kinds_.begin(); at != kinds_.end();) {
    const bool forgotten = at->second.count == 0 && ++at->second.quiet_windows >= forget_after;
    at = forgotten ? kinds_.erase(at) : std::next(at);
  }
  flush();
  ticking_ = !kinds_.empty();
  if (ticking_) timer_.after(window_);
}

}  // namespace ccbox::egress
