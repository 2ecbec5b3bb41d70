#include "policy_denies.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "existing_matches.hpp"
#include "glob.hpp"
#include "mount_view.hpp"

namespace ccbox {

namespace {

std::string because(std::string_view what, const config_entry& entry) {
  return std::string(what) + ": " + entry.reason + " (" + entry.where + ")";
}

// Does a mount of the spec show it, or a part of it?
bool is_shown(const std::string& path, const std::vector<rule>& mounts) {
  return std::any_of(mounts.begin(), mounts.end(), [&](const rule& m) {
    return m.origin != rule_origin::system && (is_within(path, m.path) || is_within(m.path, path));
  });
}

// `~` for the caller, and for others whose home a mount shows.
std::vector<std::string> homes_to_guard(const host_facts& host, const std::vector<rule>& mounts) {
  std::vector<std::string> out;
  if (!host.home.empty()) out.push_back(host.home);
  for (const auto& home : host.other_homes) {
    if (home != host.home && is_shown(spell_path(home).resolved, mounts)) out.push_back(home);
  }
  return out;
}

std::vector<std::string> expand_home(const std::string& pattern, const std::vector<std::string>& homes) {
  if (!pattern.starts_with("~/")) return {pattern};
  std::vector<std::string> out;
  out.reserve(homes.size());
  for (const auto& home : homes)
    out.push_back(join_path(home, pattern.substr(2)));
  return out;
}

// A caller who is not root and cannot read it anyway needs no rule for what only the system view shows: there
// it can neither be opened nor be made readable.
bool is_out_of_reach(const path_spelling& spelling, const host_facts& host, const mount_view& view) {
  if (host.uid == 0) return false;
  for (const auto& place : view.places_of(spelling.resolved))
    if (place.mount->origin != rule_origin::system) return false;
  const std::string& path = spelling.blocked_by.empty() ? spelling.resolved : spelling.blocked_by;
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0 || info.st_uid == host.uid) return false;
  if (!spelling.blocked_by.empty()) return true;
  return ::faccessat(AT_FDCWD, path.c_str(), S_ISDIR(info.st_mode) ? R_OK | X_OK : R_OK, AT_EACCESS) != 0;
}

result<std::vector<std::string>> private_entries_of(const std::string& etc, const host_facts& host,
                                                    std::size_t limit) {
  if (etc == "/etc" && host.private_in_etc.valid()) {
    const auto& found = host.private_in_etc.get();
    if (found && found->size() <= limit) return found;
  }
  return find_private_entries(etc, limit);  // or: its error, with the limit's number
}

}  // namespace

result<deny_list> collect_denies(const sandbox_spec& spec, const host_facts& host,
                                 const policy_config& config, const std::vector<rule>& mounts) {
  deny_list out;
  const mount_view view(mounts);
  const bool on_linux = host.platform == host_platform::linux_like;
  const auto homes = homes_to_guard(host, mounts);
  std::set<std::string, std::less<>> secrets;

  const auto add_secret = [&](const std::string& path, rule_origin origin, const std::string& reason) {
    auto spelling = spell_path(path);
    if (on_linux && spelling.resolved_type != path_type::missing && is_out_of_reach(spelling, host, view))
      return;
    if (on_linux && !spelling.blocked_by.empty() && is_out_of_reach(spelling, host, view)) return;
    if (secrets.insert(spelling.literal).second)
      out.fixed.push_back({rule_kind::read_deny, origin, std::move(spelling), reason});
  };
  for (const auto& entry : config.read_deny) {
    const std::string reason = because("secret", entry);
    for (const auto& path : expand_home(entry.pattern, homes)) {
      if (!has_wildcard(entry.pattern)) {
        add_secret(path, rule_origin::secret, reason);
        continue;
      }
      out.globs.push_back({rule_kind::read_deny, rule_origin::secret, path, reason});
      auto found = expand_glob(path, config.max_existing_matches);
      if (!found) return found.error();
      for (const auto& match : *found)
        add_secret(match, rule_origin::existing_match, "existing match of " + quoted(path) + ": " + reason);
    }
  }
  for (const auto& path : host.own_secrets)
    add_secret(path, rule_origin::mandatory, "secret: credentials of this very sandbox");
  const auto* etc = view.over("/etc");
  if (on_linux && host.uid == 0 && etc && etc->guest_path == "/etc" && etc->origin == rule_origin::system) {
    const auto found = private_entries_of(etc->path, host, config.max_existing_matches);
    if (!found) return found.error();
    for (const auto& path : *found)
      add_secret(path, rule_origin::secret, "secret: not for everybody to read, and root could");
  }

  for (std::size_t i = 0; i < spec.protected_paths.size(); ++i) {
    const auto& path = spec.protected_paths[i];
    const std::string reason = "protectedPaths[" + std::to_string(i) + "]: not writable in any mode";
    auto spelling = spell_path(path);
    // A path that exists is meant as it is written, whatever characters are in it.
    if (has_wildcard(path) && spelling.type == path_type::missing)
      out.globs.push_back({rule_kind::write_deny, rule_origin::protected_path, spelling.literal, reason});
    else
      out.fixed.push_back({rule_kind::write_deny, rule_origin::protected_path, std::move(spelling), reason});
  }
  for (const auto& entry : config.write_deny)
    for (const auto& path : expand_home(entry.pattern, homes)) {
      const std::string reason = because("mandatory deny", entry);
      if (has_wildcard(entry.pattern))
        out.globs.push_back({rule_kind::write_deny, rule_origin::mandatory, path, reason});
      else
        out.fixed.push_back({rule_kind::write_deny, rule_origin::mandatory, spell_path(path), reason});
    }
  for (const auto& path : host.own_files) {
    auto spelling = spell_path(path);
    // One that does not exist is denied too: whoever made it would be loaded the next time.
    if (is_shown(spelling.resolved, mounts))
      out.fixed.push_back({rule_kind::write_deny, rule_origin::mandatory, std::move(spelling),
                           "mandatory deny: a part of this very sandbox"});
  }
  for (const auto& m : host.kernel_mounts) {
    if (!is_shown(m.path, mounts)) continue;
    auto spelling = spell_path(m.path);
    if (spelling.resolved_type == path_type::missing) continue;
    out.fixed.push_back({m.secret ? rule_kind::read_deny : rule_kind::write_deny, rule_origin::mandatory,
                         std::move(spelling), "mandatory deny: the kernel's own files (" + m.type + ")"});
  }
  return out;
}

result<void> restrict_mounts(std::vector<rule>& mounts, const deny_list& denies, rule_bits waived,
                             std::vector<std::string>& warnings) {
  std::map<std::string, const fixed_deny*, std::less<>> by_path;
  const bool secrets_may_be_read = waived & CCBOX_RULE_FS_READ_DENY;
  for (const auto& deny : denies.fixed) {
    by_path.try_emplace(deny.spelling.resolved, &deny);
    by_path.try_emplace(deny.spelling.literal, &deny);
  }
  for (auto& m : mounts) {
    if (m.origin == rule_origin::system) continue;
    for (std::string_view above = m.path;; above = parent_path(above)) {
      const auto found = by_path.find(above);
      if (found != by_path.end()) {
        const auto& deny = *found->second;
        if (deny.kind == rule_kind::read_deny && !secrets_may_be_read)
          return error{error_code::invalid_argument,
                       m.reason + ": " + quoted(m.path) + " cannot be shown: " + deny.reason,
                       "leave the mount out, or give the rule up with --without fs_read_deny"};
        if (!m.read_only && !(waived & CCBOX_RULE_FS_WRITE_DENY)) {
          m.read_only = true;
          m.origin = deny.origin;
          warnings.push_back(m.reason + ": " + quoted(m.path) + " is mounted read-only: " + deny.reason);
          m.reason += "; read-only: " + deny.reason;
        }
      }
      if (above == "/") break;
    }
  }
  return {};
}

}  // namespace ccbox
