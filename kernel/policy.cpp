#include "policy.hpp"

#include <algorithm>

#include "deny_rules.hpp"
#include "mount_view.hpp"
#include "policy_denies.hpp"
#include "policy_mounts.hpp"

namespace ccbox {

namespace {

constexpr std::string_view private_home = "/run/ccbox/home";
constexpr std::string_view private_tmp = "/run/ccbox/tmp";

// Does a mount of the spec show `guest`? (The system view is no place to write to.)
bool is_mounted(const std::vector<rule>& mounts, std::string_view guest) {
  return std::any_of(mounts.begin(), mounts.end(), [&](const rule& m) {
    return m.kind == rule_kind::mount && m.origin != rule_origin::system && is_within(guest, m.guest_path);
  });
}

bool is_in_system_view(const std::vector<rule>& mounts, std::string_view guest) {
  return std::any_of(mounts.begin(), mounts.end(), [&](const rule& m) {
    return m.kind == rule_kind::mount && m.origin == rule_origin::system && is_within(guest, m.guest_path);
  });
}

void place_private_directories(policy& p, const host_facts& host, bool unconfined) {
  p.home = host.home.empty() ? "/" : host.home;
  p.tmpdir = "/tmp";
  if (unconfined || host.platform != host_platform::linux_like) return;
  // The home is memory of the session at the path that programs know, unless something else has that place.
  const bool usable = host.home.starts_with('/') && host.home != "/" && host.home != "/tmp" &&
                      host.home != "/var/tmp" && fits_in_enclosure(host.home) &&
                      !is_reserved_place(host.home) && !is_within(host.home, "/run") &&
                      host.home.find("/../") == std::string::npos && !host.home.ends_with("/..");
  if (!usable || is_mounted(p.rules, p.home) || is_in_system_view(p.rules, p.home)) p.home = private_home;
  if (is_mounted(p.rules, p.tmpdir)) p.tmpdir = private_tmp;
}

result<std::string> choose_workdir(const policy& p, const std::vector<rule>& denies) {
  if (!p.spec.guest_workdir) {
    // The first mount of the spec that is a directory; without any, the home.
    for (const auto& bind : p.spec.bind_mounts) {
      const auto asked = spell_path(bind.host_path);
      const std::string given = normalise_path(bind.guest_path);
      for (const auto& m : p.rules)
        if (m.kind == rule_kind::mount && m.type == path_type::directory && m.path == asked.resolved &&
            (given.empty() || given == m.guest_path || given == asked.literal ||
             given == normalise_path(bind.host_path)))
          return m.guest_path;
    }
    return p.home;
  }
  const std::string guest = normalise_path(*p.spec.guest_workdir);
  const auto refuse = [&](std::string_view why, std::string hint) {
    return error{error_code::invalid_argument, "guestWorkdir: " + quoted(guest) + " " + std::string(why),
                 std::move(hint)};
  };
  if ((guest + "/").find("/../") != std::string::npos)
    return refuse("has `..` as a component", "write it without");
  if (guest == p.home || guest == p.tmpdir) return guest;
  const mount_view view(p.rules);
  const auto host = view.host_path(guest);
  if (!host || is_reserved_place(guest))
    return refuse("lies in no mount", "mount it, or choose a directory in one of bindMounts");
  const auto spelling = spell_path(*host);
  if (spelling.resolved_type == path_type::missing)
    return refuse("does not exist", "create " + quoted(*host) + " first, or choose another directory");
  if (spelling.resolved_type != path_type::directory)
    return refuse("is not a directory", "choose a directory");
  // Through a link it leads to the same text inside, where something must show it.
  if (spelling.through_symlink && spelling.resolved != *host && !view.over(spelling.resolved) &&
      view.places_of(spelling.resolved).empty())
    return refuse("leads through a symbolic link to " + quoted(spelling.resolved) + ", which no mount shows",
                  "mount that directory too");
  for (const auto& r : denies)
    if (r.kind == rule_kind::read_deny && !(r.bit & p.waived) && !r.guest_path.empty() &&
        is_within(guest, r.guest_path))
      return refuse("cannot be read: " + r.reason, "choose another directory");
  return guest;
}

// The helper by which ssh gets out, wherever there is a network namespace with proxies in it.
void add_net_connect(std::vector<rule>& mounts, const std::string& helper) {
  const auto spelling = spell_path(helper);
  if (spelling.resolved_type != path_type::file) return;
  rule r;
  r.kind = rule_kind::mount;
  r.origin = rule_origin::system;
  r.bit = CCBOX_RULE_FS_BINDS_ONLY;
  r.type = path_type::file;
  r.path = spelling.resolved;
  r.guest_path = net_connect_inside;
  r.read_only = true;
  r.reason = "system view: takes ssh through the session's proxies";
  const auto place = std::upper_bound(mounts.begin(), mounts.end(), r, [](const rule& a, const rule& b) {
    return a.guest_path < b.guest_path;
  });
  mounts.insert(place, std::move(r));
}

result<void> set_required(policy& p, const host_facts& host, const policy_config& config) {
  p.waived = waived_bits(p.spec);
  if (p.backend_request == "none") {
    p.required = 0;
    p.waived = 0;
    p.warnings.push_back(
        "backend none: RUNNING UNCONFINED. The command sees and changes whatever this user can, and the "
        "network is open");
    return {};
  }
  p.required = host.platform == host_platform::macos ? config.required_macos : config.required_linux;
  if (p.spec.limits.any()) p.required |= CCBOX_RULE_RESOURCE_LIMITS;
  if (p.backend_request == "microvm") {
    if (p.waived & CCBOX_RULE_KERNEL_BOUNDARY)
      return error{error_code::invalid_argument,
                   "backend 'microvm' and without 'kernel_boundary' contradict each other",
                   "leave one of them out"};
    p.required |= CCBOX_RULE_KERNEL_BOUNDARY;
  }
  p.required &= ~p.waived;
  for (const auto& rule : all_rule_bits())
    if (p.waived & rule.bit)
      p.warnings.push_back("without " + std::string(rule.name) + ": given up that " +
                           std::string(rule.promise));
  return {};
}

// Whoever names a path to be protected is told that it is not.
void warn_of_protected_names(policy& p, const std::vector<rule>& denies) {
  if (!(p.waived & CCBOX_RULE_FS_NAME_DENY)) return;
  for (const auto& r : denies) {
    if (r.kind != rule_kind::name_deny || r.origin != rule_origin::protected_path) continue;
    std::string warning =
        "without fs_name_deny: " + quoted(r.path) + " can be created, although it is to be protected";
    if (std::find(p.warnings.begin(), p.warnings.end(), warning) == p.warnings.end())
      p.warnings.push_back(std::move(warning));
  }
}

}  // namespace

std::string_view to_string(rule_kind kind) {
  switch (kind) {
    case rule_kind::mount:
      return "mount";
    case rule_kind::read_deny:
      return "read_deny";
    case rule_kind::write_deny:
      return "write_deny";
    case rule_kind::name_deny:
      return "name_deny";
    case rule_kind::name_exempt:
      return "name_exempt";
    case rule_kind::exec_deny:
      return "exec_deny";
    case rule_kind::exec_grant:
      return "exec_grant";
  }
  return "mount";
}

std::string_view to_string(name_condition condition) {
  switch (condition) {
    case name_condition::git_config:
      return "git-config";
    case name_condition::is_new:
      return "new";
    case name_condition::none:
      break;
  }
  return {};
}

std::string_view to_string(rule_origin origin) {
  switch (origin) {
    case rule_origin::system:
      return "system";
    case rule_origin::spec:
      return "spec";
    case rule_origin::mode:
      return "mode";
    case rule_origin::runner_state:
      return "runner_state";
    case rule_origin::protected_path:
      return "protected_path";
    case rule_origin::secret:
      return "secret";
    case rule_origin::mandatory:
      return "mandatory";
    case rule_origin::existing_match:
      return "existing_match";
  }
  return "spec";
}

result<policy> compile_policy(const sandbox_spec& spec, const host_facts& host, const policy_config& config,
                              const egress_sources& egress) {
  if (auto valid = validate(spec); !valid) return valid.error();
  policy p;
  p.spec = spec;
  p.backend_request = spec.backend.value_or("");
  p.network_allowed = spec.network_enabled && spec.capabilities.network;
  if (auto set = set_required(p, host, config); !set) return set.error();
  auto resolved = resolve_egress(spec, egress);
  if (!resolved) return resolved.error();
  p.egress = std::move(*resolved);
  if (!p.egress.proxied && !spec.egress_allowlist.empty())
    p.warnings.push_back("egressAllowlist has no effect: without net_proxy_only the network is the host's");

  auto mounts = compile_mounts(spec, host, config, p.warnings);
  if (!mounts) return mounts.error();
  if (p.egress.configured && p.egress.proxied && p.backend_request != "none" &&
      host.platform == host_platform::linux_like)
    add_net_connect(*mounts, egress.net_connect);
  std::vector<rule> denies;
  // Without a boundary a rule would only pretend.
  const bool unconfined = p.backend_request == "none";
  if (!unconfined) {
    auto fixed = collect_denies(spec, host, config, *mounts);
    if (!fixed) return fixed.error();
    if (auto fine = restrict_mounts(*mounts, *fixed, p.waived, p.warnings); !fine) return fine.error();
    const auto names = compile_name_rules(config);
    if (!names) return names.error();
    if (!(p.waived & CCBOX_RULE_FS_WRITE_DENY)) restrict_mounts_by_name(*mounts, config, *names, p.warnings);
    auto rules =
        compile_denies({*fixed, *names, *mounts, host, config, spec.exec_grant_roots, p.waived, p.warnings});
    if (!rules) return rules.error();
    denies = std::move(*rules);
  }
  p.rules = std::move(*mounts);
  place_private_directories(p, host, unconfined);
  auto workdir = choose_workdir(p, denies);
  if (!workdir) return workdir.error();
  p.workdir = std::move(*workdir);
  warn_of_protected_names(p, denies);
  p.rules.insert(p.rules.end(), std::make_move_iterator(denies.begin()),
                 std::make_move_iterator(denies.end()));
  return p;
}

}  // namespace ccbox
