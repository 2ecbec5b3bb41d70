#include "floor.hpp"

#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <vector>

#include "broker_orders.hpp"
#include "ccbox/floor.hpp"
#include "notify_filter.hpp"
#include "paths.hpp"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

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
  for (auto& [guest, anchor] : anchors)
    all.push_back(std::move(anchor));
  return all;
}

bool is_guarded(const view& v, const entry& step) {
  return step.kind == entry_kind::bind && step.is_directory && v.is_writable(step);
}

}  // namespace

bool is_name_rule(const plugin::rule& r) {
  return r.kind == CCBOX_KIND_NAME_DENY || r.kind == CCBOX_KIND_NAME_EXEMPT;
}

std::string missing_for_names() {
  constexpr int abi_with_truncate = 3;
  const long landlock = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (landlock < 0)
    return errno == EOPNOTSUPP ? "nobody: Landlock is switched off; boot with lsm=landlock,..."
                               : "nobody: this kernel has no Landlock, which Linux 6.2 and later have";
  if (landlock < abi_with_truncate)
    return "nobody: Landlock of this kernel is version " + std::to_string(landlock) +
           ", and version 3 of Linux 6.2 is needed";
  // Known flags are looked at before the program, which is none.
  const long listener =
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, nullptr);
  if (listener < 0 && errno != EFAULT)
    return "nobody: this kernel has no system-call listeners that signals leave alone (Linux 5.19 has them)";
  return {};
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

  const auto init = request.init_path();
  const auto slash = init.rfind('/');
  guard planned;
  planned.broker_path = std::string(init.substr(0, slash == init.npos ? 0 : slash + 1)) + "ccbox-broker";
  planned.broker = encode(orders);
  planned.floor = encode(floor);
  return planned;
}

}  // namespace ccbox::bubblewrap
