#include "floor.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "broker_orders.hpp"
#include "ccbox/floor.hpp"
#include "notify_filter.hpp"
#include "paths.hpp"

namespace ccbox::bubblewrap {

namespace {

// `path`, absolute and inside, as a glob right below the root.
std::string literal_glob(std::string_view path) {
  return "." + std::string(path);
}

name_rule::condition condition_of(const plugin::rule& r) {
  if (r.has(CCBOX_RULE_VETTED_GIT_CONFIG)) return name_rule::condition::git_config;
  return r.has(CCBOX_RULE_NEW_ALLOWED) ? name_rule::condition::is_new : name_rule::condition::none;
}

std::vector<name_anchor> anchors_of(const plugin::plan_request& request) {
  std::map<std::string, name_anchor, std::less<>> anchors;
  for (const auto& r : request.rules()) {
    if (!is_name_rule(r) || request.is_waived(r)) continue;
    const bool is_glob = r.has(CCBOX_RULE_GLOB);
    const auto guest = is_glob ? std::string(r.guest_path) : std::string("/");
    auto& anchor = anchors[guest];
    anchor.guest = guest;
    auto pattern = is_glob ? std::string(r.path) : literal_glob(r.path);
    if (r.kind == CCBOX_KIND_NAME_DENY)
      anchor.deny.push_back({std::move(pattern), std::string(r.reason), condition_of(r)});
    else
      anchor.exempt.push_back(std::move(pattern));
  }
  std::vector<name_anchor> all;
  all.reserve(anchors.size());
  for (auto& [guest, anchor] : anchors)
    all.push_back(std::move(anchor));
  return all;
}

bool is_guarded(const view& v, const entry& step) {
  return step.kind == entry_kind::bind && step.is_directory && v.is_writable(step);
}

}  // namespace

std::string broker_beside(std::string_view init_path) {
  const auto slash = init_path.rfind('/');
  return std::string(init_path.substr(0, slash == init_path.npos ? 0 : slash + 1)) + "ccbox-broker";
}

std::string layer_of_names(const plugin::rule& r) {
  std::string by_broker = "refused when it is made";
  if (r.kind == CCBOX_KIND_NAME_EXEMPT)
    by_broker = "let through";
  else if (condition_of(r) == name_rule::condition::git_config)
    by_broker = "put into place if it can do no harm, refused in every other way";
  else if (condition_of(r) == name_rule::condition::is_new)
    by_broker = "made where none is, refused in every other way";
  return "broker: " + by_broker + "; Landlock: nothing is made without the broker";
}

bool is_name_rule(const plugin::rule& r) {
  return r.kind == CCBOX_KIND_NAME_DENY || r.kind == CCBOX_KIND_NAME_EXEMPT;
}

std::optional<guard> plan_guard(const plugin::plan_request& request, const view& v) {
  broker_orders orders;
  orders.anchors = anchors_of(request);
  const bool forbids = std::any_of(orders.anchors.begin(), orders.anchors.end(),
                                   [](const name_anchor& a) { return !a.deny.empty(); });
  if (!forbids) return std::nullopt;

  floor_orders floor;
  floor.open = {"/proc", "/dev"};
  for (const auto& step : v.steps()) {
    if (step.kind == entry_kind::bind) orders.mounts.push_back({step.guest, step.host});
    if (is_guarded(v, step)) floor.guarded.push_back(step.guest);
  }
  for (const auto& step : v.steps()) {
    if (step.kind != entry_kind::tmpfs || !v.is_writable(step)) continue;
    const bool contains_guarded = std::any_of(v.steps().begin(), v.steps().end(), [&](const entry& other) {
      return other.kind == entry_kind::bind && v.is_writable(other) && covers(step.guest, other.guest);
    });
    if (!contains_guarded) floor.open.push_back(step.guest);
  }
  orders.open = floor.open;
  floor.filter = build_notify_filter();

  guard planned;
  planned.broker_path = broker_beside(request.init_path());
  planned.broker = encode(orders);
  planned.floor = encode(floor);
  return planned;
}

}  // namespace ccbox::bubblewrap
