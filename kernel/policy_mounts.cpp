#include "policy_mounts.hpp"

#include <limits.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "mount_view.hpp"

namespace ccbox {

namespace {

struct wanted_mount {
  std::string key;      // "bindMounts[2]"
  std::string literal;  // as it was asked for, normalised
  std::string host;     // resolved
  std::string guest;
  path_type type = path_type::directory;
  bool guest_is_given = false;  // at another place than the host's
  bool through_symlink = false;
  bool read_only = false;
  rule_origin origin = rule_origin::spec;
};

error refuse(const std::string& key, std::string_view path, std::string_view why, std::string hint,
             error_code code = error_code::invalid_argument) {
  return {code, key + ": " + quoted(path) + " " + std::string(why), std::move(hint)};
}

result<wanted_mount> resolve_source(const std::string& key, const std::string& path) {
  const auto spelling = spell_path(path);
  wanted_mount out;
  out.key = key;
  out.literal = spelling.literal;
  out.host = spelling.resolved;
  out.guest = spelling.literal;
  out.type = spelling.resolved_type;
  out.through_symlink = spelling.through_symlink;
  if (spelling.magic)
    return refuse(
        key, path, "leads into or through /proc, /dev or /sys",
        "an enclosure has a /proc and a /dev of its own, and no /sys; a link through them: name what it "
        "leads to");
  if (!spelling.blocked_by.empty())
    return refuse(key, path, "cannot be reached: " + quoted(spelling.blocked_by) + " may not be searched",
                  "give this user access to it, or leave it out", error_code::permission_denied);
  switch (out.type) {
    case path_type::missing:
      return refuse(key, path, "does not exist",
                    "create it first, or leave it out: what is asked for is never skipped silently",
                    error_code::not_found);
    case path_type::symlink:
      return refuse(key, path, "is a loop of symbolic links", "name the file or directory itself");
    case path_type::file:
      if (path.ends_with('/') || path.ends_with("/."))
        return refuse(key, path, "is a file, and its spelling asks for a directory",
                      "leave the '/' at its end out");
      return out;
    case path_type::other:
      return refuse(key, path, "is neither a regular file nor a directory",
                    "sockets, FIFOs and devices cannot be mounted; mount the directory around it");
    default:
      return out;
  }
}

// Entries of the system view that exist here.
std::vector<rule> system_mounts(const policy_config& config) {
  std::vector<rule> out;
  for (const auto& entry : config.system_read) {
    const auto spelling = spell_path(entry.pattern);
    if (spelling.type == path_type::missing || spelling.type == path_type::other) continue;
    rule r;
    r.kind = rule_kind::mount;
    r.origin = rule_origin::system;
    r.bit = CCBOX_RULE_FS_BINDS_ONLY;
    r.type = spelling.type;
    r.path = spelling.type == path_type::symlink ? spelling.literal : spelling.resolved;
    r.guest_path = spelling.literal;
    r.read_only = true;
    r.reason = "system view: " + entry.reason + " (" + entry.where + ")";
    out.push_back(std::move(r));
  }
  return out;
}

result<void> check_guest_path(const wanted_mount& m, const std::vector<rule>& system) {
  const auto bad = [&](std::string_view why, std::string hint) {
    return refuse(m.key + ".guestPath", m.guest, why, std::move(hint));
  };
  if ((m.guest + "/").find("/../") != std::string::npos)
    return bad("has `..` as a component", "write the path without it");
  if (!fits_in_enclosure(m.guest))
    return bad("is too long for the enclosure", "at most 255 bytes a name and 4087 in all");
  if (m.host == "/" && m.guest != "/")
    return bad("cannot show the host's root: its /proc, /dev and /sys would come along",
               "mount the directories that are needed, or '/' at '/'");
  if (m.guest == "/" && m.host != "/")
    return bad("is the root of the enclosure, which it makes itself", "mount at a directory below it");
  if (m.host != "/" && is_reserved_place(m.guest))
    return bad("is a place that the enclosure makes itself", "mount somewhere else");
  if (m.host == "/" || m.guest == m.host) return {};
  for (const auto& s : system)
    if (is_within(m.guest, s.guest_path))
      return bad("would hide " + quoted(s.guest_path) + " of the system", "mount outside of it");
  return {};
}

// One mount a place; what was asked for twice is asked for once. Returns the map by place inside.
result<std::map<std::string, wanted_mount>> collapse(std::vector<wanted_mount> wanted,
                                                     std::vector<std::string>& warnings) {
  std::map<std::string, wanted_mount> by_guest;
  std::map<std::string, bool> read_only_by_host;
  for (const auto& m : wanted)
    if (m.origin != rule_origin::runner_state) read_only_by_host[m.host] |= m.read_only;
  for (auto& m : wanted) {
    // A second name for a read-only tree would be a way to write it.
    if (m.origin != rule_origin::runner_state && !m.read_only && read_only_by_host[m.host]) {
      warnings.push_back(m.key + ": " + quoted(m.literal) +
                         " is mounted read-only, as it is listed elsewhere");
      m.read_only = true;
    }
    const auto [place, fresh] = by_guest.try_emplace(m.guest, m);
    if (fresh) continue;
    auto& before = place->second;
    if (before.host != m.host)
      return error{
          error_code::conflict,
          m.key + ": " + quoted(m.guest) + " already shows " + quoted(before.host) + " (" + before.key + ")",
          "give one of the two another guestPath"};
    // Runner state is writable in every mode.
    if (m.origin == rule_origin::runner_state) before = m;
  }
  return by_guest;
}

std::string reason_of(const wanted_mount& m, const sandbox_spec& spec) {
  if (m.origin == rule_origin::runner_state) return m.key + ": runner state, writable in every mode";
  if (m.origin == rule_origin::mode)
    return m.key + ": read-only in mode " + std::string(to_string(spec.mode));
  return m.key;
}

// The place of a nested mount must be there: it is never made.
result<void> check_mount_points(const std::vector<rule>& mounts,
                                const std::map<std::string, wanted_mount>& wanted) {
  const mount_view view(mounts);
  for (const auto& m : mounts) {
    const auto asked = wanted.find(m.guest_path);
    if (asked == wanted.end()) continue;
    const auto* around = view.around(m);
    if (!around) continue;
    const std::string place = join_path(around->path, path_below(m.guest_path, around->guest_path));
    if (place == m.path) continue;
    const std::string& key = asked->second.key;
    const auto spelling = spell_path(place);
    const std::string inside = "lies in the mounted " + quoted(around->guest_path);
    if (around->type == path_type::file)
      return refuse(key, m.guest_path, inside + ", which is a file", "mount it somewhere else");
    if (spelling.through_symlink)
      return refuse(key, m.guest_path, inside + " and is reached there through a symbolic link",
                    "mount it at the place that the link names: " + spelling.resolved);
    if (spelling.resolved_type == path_type::missing)
      return refuse(
          key, m.guest_path, inside + ", where it does not exist",
          "create " + quoted(place) + " first (ccbox makes nothing in your tree), or mount it elsewhere",
          error_code::not_found);
    if (spelling.resolved_type != m.type)
      return refuse(key, m.guest_path,
                    inside + ", where it is a " + std::string(to_string(spelling.resolved_type)) +
                        ", not a " + std::string(to_string(m.type)),
                    "mount it somewhere else");
  }
  return {};
}

}  // namespace

bool fits_in_enclosure(std::string_view guest) {
  constexpr std::size_t most_bytes = PATH_MAX - 1 - sizeof "/newroot" + 1;
  if (guest.size() > most_bytes) return false;
  for (std::size_t begin = 0; begin < guest.size();) {
    const auto end = std::min(guest.find('/', begin), guest.size());
    if (end - begin > NAME_MAX) return false;
    begin = end + 1;
  }
  return true;
}

bool is_reserved_place(std::string_view guest) {
  return is_within(guest, "/proc") || is_within(guest, "/dev") || is_within(guest, "/sys") ||
         guest == "/run" || is_within(guest, "/run/ccbox");
}

result<std::vector<rule>> compile_mounts(const sandbox_spec& spec, const host_facts& host,
                                         const policy_config& config, std::vector<std::string>& warnings) {
  // Only a mount namespace can show a path at another place.
  const bool places_are_fixed = host.platform != host_platform::linux_like || spec.backend == "none";
  const auto system =
      host.platform == host_platform::linux_like ? system_mounts(config) : std::vector<rule>();
  std::vector<wanted_mount> wanted;
  for (std::size_t i = 0; i < spec.bind_mounts.size(); ++i) {
    const auto& bind = spec.bind_mounts[i];
    const std::string key = "bindMounts[" + std::to_string(i) + "]";
    auto m = resolve_source(key, bind.host_path);
    if (!m) return m.error();
    const std::string guest = normalise_path(bind.guest_path);
    if (!guest.empty() && guest != m->literal && guest != normalise_path(bind.host_path)) {
      m->guest = guest;
      m->guest_is_given = true;
      if (places_are_fixed)
        return refuse(key + ".guestPath", guest,
                      "differs from hostPath, and this backend has one view of the host",
                      "leave guestPath out");
    }
    m->read_only = bind.read_only;
    if (spec.mode != sandbox_mode::chat && !m->read_only) {
      m->read_only = true;
      m->origin = rule_origin::mode;
    }
    wanted.push_back(std::move(*m));
  }
  for (std::size_t i = 0; i < spec.runner_state_dirs.size(); ++i) {
    const std::string key = "runnerStateDirs[" + std::to_string(i) + "]";
    auto m = resolve_source(key, spec.runner_state_dirs[i]);
    if (!m) return m.error();
    if (m->type != path_type::directory)
      return refuse(key, spec.runner_state_dirs[i], "is not a directory",
                    "name the directory that holds the state");
    m->origin = rule_origin::runner_state;
    wanted.push_back(std::move(*m));
  }

  // A source that is named through a link which a mount around it shows anyway is mounted where the link
  // leads.
  std::set<std::string, std::less<>> places, system_places;
  for (const auto& s : system)
    system_places.insert(s.guest_path);
  for (const auto& m : wanted)
    places.insert(m.guest);
  for (auto& m : wanted) {
    if (m.guest_is_given || !m.through_symlink) continue;
    bool shown = places_are_fixed || system_places.contains(m.literal);
    for (std::string_view above = m.literal; !shown && above != "/";) {
      above = parent_path(above);
      shown = places.contains(above) || system_places.contains(above);
    }
    if (shown) m.guest = m.host;
  }
  for (const auto& m : wanted)
    if (auto fine = check_guest_path(m, system); !fine) return fine.error();
  auto by_guest = collapse(std::move(wanted), warnings);
  if (!by_guest) return by_guest.error();

  std::vector<rule> mounts;
  for (const auto& s : system) {
    const auto same = by_guest->find(s.guest_path);
    if (same == by_guest->end()) {
      mounts.push_back(s);
      continue;
    }
    if (!same->second.read_only)
      warnings.push_back(same->second.key + ": " + quoted(s.guest_path) +
                         " stays read-only: the host runs programs from it");
    mounts.push_back(s);
    by_guest->erase(same);
  }
  for (const auto& [guest, m] : *by_guest) {
    rule r;
    r.kind = rule_kind::mount;
    r.origin = m.origin;
    r.bit = CCBOX_RULE_FS_BINDS_ONLY;
    r.path = m.host;
    r.guest_path = guest;
    r.read_only = m.read_only;
    r.type = m.type;
    r.reason = reason_of(m, spec);
    mounts.push_back(std::move(r));
  }
  std::sort(mounts.begin(), mounts.end(),
            [](const rule& a, const rule& b) { return a.guest_path < b.guest_path; });
  if (!places_are_fixed)
    if (auto fine = check_mount_points(mounts, *by_guest); !fine) return fine.error();
  return mounts;
}

}  // namespace ccbox
