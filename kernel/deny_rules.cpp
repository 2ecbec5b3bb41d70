#include "deny_rules.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "existing_matches.hpp"
#include "glob.hpp"
#include "mount_view.hpp"

namespace ccbox {

namespace {

constexpr std::size_t most_name_rules = 100'000;
// Of existing matches and the directories above them: a start with a thousand takes seconds.
constexpr std::size_t most_mounts = 400;
// That the name rules keep: what is found is only counted.
constexpr std::size_t most_named_matches = 100'000;

std::string because(const config_entry& entry) {
  return "mandatory deny: " + entry.reason + " (" + entry.where + ")";
}

std::vector<std::string> components(std::string_view path) {
  std::vector<std::string> out;
  for (auto below = path_below(path, "/"); !below.empty();) {
    const auto slash = below.find('/');
    out.emplace_back(below.substr(0, slash));
    below.remove_prefix(slash == std::string_view::npos ? below.size() : slash + 1);
  }
  return out;
}

result<glob_set> compile_globs(const std::vector<config_entry>& entries) {
  glob_set out;
  for (const auto& entry : entries) {
    auto compiled = compile_glob(entry.pattern);
    if (!compiled) return error{error_code::invalid_argument, entry.where + ": " + compiled.error().what, {}};
    out.add(std::move(*compiled));
  }
  return out;
}

// Globs that begin with `**` are where the path leads them; those that are anchored begin at the mount.
glob_set::state state_at(const glob_set& globs, const rule& mount) {
  glob_set::state state;
  if (mount.origin != rule_origin::runner_state)
    for (const auto& name : components(mount.path))
      state = globs.step(state, name);
  for (const auto& anchored : globs.start())
    state.push_back(anchored);
  return state;
}

// The globs below a mount that glob `i` comes to there.
std::vector<std::string> texts_at(const glob_set& globs, const glob_set::state& state, std::size_t i) {
  const auto positions = globs.positions_of(state, i);
  if (positions == globs[i].start()) return {globs[i].text()};
  return globs[i].remaining(positions);
}

class deny_compiler {
 public:
  explicit deny_compiler(const deny_request& request)
      : request_(request),
        view_(request.mounts),
        on_linux_(request.host.platform == host_platform::linux_like),
        names_hold_(on_linux_ &&
                    (request.config.required_linux & ~request.waived & CCBOX_RULE_FS_NAME_DENY) != 0) {}

  result<std::vector<rule>> run() {
    for (const auto& deny : request_.denies.fixed)
      add_fixed(deny);
    if (!on_linux_) add_globs();
    if (auto names = add_name_rules(); !names) return names.error();
    if (auto there = check_exec_grants(); !there) return there.error();
    if (request_.host.platform == host_platform::macos) add_exec_rules();
    std::vector<rule> out;
    for (auto* part : {&read_, &write_, &names_, &exempts_, &exec_})
      std::move(part->begin(), part->end(), std::back_inserter(out));
    return out;
  }

 private:
  struct spelled {
    std::string path;
    path_type type;
    bool is_target;
  };

  static std::vector<spelled> spellings(const path_spelling& s) {
    std::vector<spelled> out;
    if (!s.blocked_by.empty()) out.push_back({s.blocked_by, path_type::directory, false});
    if (!s.through_symlink) {
      out.push_back({s.literal, s.type, false});
    } else {
      out.push_back({s.literal, path_type::symlink, false});
      if (s.resolved != s.literal) out.push_back({s.resolved, s.resolved_type, true});
    }
    return out;
  }

  void add(std::vector<rule>& list, rule r) {
    if (seen_.emplace(r.kind, r.path, r.guest_path).second) list.push_back(std::move(r));
  }

  static rule make(rule_kind kind, rule_bits bit, rule_origin origin, const std::string& reason) {
    rule r;
    r.kind = kind;
    r.bit = bit;
    r.origin = origin;
    r.reason = reason;
    return r;
  }

  std::vector<mount_view::place> places_of(const std::string& path) const {
    if (!on_linux_) return {{path, nullptr}};
    return view_.places_of(path);
  }

  void add_at_places(std::vector<rule>& list, const rule& pattern, const spelled& s,
                     const std::vector<mount_view::place>& places) {
    rule r = pattern;
    r.path = s.path;
    r.type = s.type;
    r.is_target = s.is_target;
    if (places.empty()) add(list, r);
    for (const auto& place : places) {
      r.guest_path = place.guest;
      add(list, r);
    }
  }

  void add_fixed(const fixed_deny& deny) {
    const bool reads = deny.kind == rule_kind::read_deny;
    const bool read_waived = request_.waived & CCBOX_RULE_FS_READ_DENY;
    for (const auto& s : spellings(deny.spelling)) {
      if (reads)
        add_at_places(read_, make(rule_kind::read_deny, CCBOX_RULE_FS_READ_DENY, deny.origin, deny.reason), s,
                      places_of(s.path));
      add_write(s, deny.origin, deny.reason, reads && on_linux_ && !read_waived, true);
    }
  }

  // `only_names`: a read deny covers what exists, so only what cannot be covered is left to do.
  void add_write(const spelled& s, rule_origin origin, const std::string& reason, bool only_names,
                 bool keep_name) {
    const auto places = places_of(s.path);
    const bool cannot_be_covered =
        on_linux_ && (s.type == path_type::missing || s.type == path_type::symlink);
    bool named = false;
    if (cannot_be_covered && keep_name)
      for (const auto& place : places) {
        if (place.mount->read_only) continue;
        rule r = make(rule_kind::name_deny, CCBOX_RULE_FS_NAME_DENY, origin, reason);
        r.path = place.guest;
        r.guest_path = place.mount->guest_path;
        r.type = s.type;
        add(names_, std::move(r));
        named = true;
      }
    if (only_names || (named && s.type == path_type::missing)) return;
    add_at_places(write_, make(rule_kind::write_deny, CCBOX_RULE_FS_WRITE_DENY, origin, reason), s, places);
  }

  // Whoever cannot expand them at launch and forbid names afterwards takes them as they are.
  void add_globs() {
    for (const auto& deny : request_.denies.globs) {
      std::string_view fixed = deny.pattern;
      while (has_wildcard(fixed))
        fixed = parent_path(fixed);
      const auto spelling = spell_path(fixed);
      std::vector<spelled> both = {{deny.pattern, path_type::missing, false}};
      if (spelling.through_symlink)
        both.push_back(
            {join_path(spelling.resolved, path_below(deny.pattern, fixed)), path_type::missing, true});
      for (const auto& s : both) {
        rule r = make(rule_kind::write_deny, CCBOX_RULE_FS_WRITE_DENY, deny.origin, deny.reason);
        r.path = r.guest_path = s.path;
        r.glob = true;
        r.is_target = s.is_target;
        add(write_, r);
        if (deny.kind != rule_kind::read_deny) continue;
        r.kind = rule_kind::read_deny;
        r.bit = CCBOX_RULE_FS_READ_DENY;
        add(read_, std::move(r));
      }
    }
  }

  result<void> add_name_rules() {
    const auto& [deny, exempt] = request_.names;
    std::vector<const rule*> roots;
    for (const auto& m : request_.mounts)
      if (!m.read_only && m.type == path_type::directory) roots.push_back(&m);
    if (roots.size() * (deny.size() + exempt.size()) > most_name_rules)
      return error{error_code::too_large,
                   std::to_string(roots.size()) + " writable mounts with " +
                       std::to_string(deny.size() + exempt.size()) + " name rules each are more than " +
                       std::to_string(most_name_rules) + " rules",
                   "mount the directory around them, or mount those read-only that are only read"};
    const auto skip = denied_already();
    for (const auto* root : roots)
      if (auto done = add_names_below(*root, deny, exempt, skip); !done) return done;
    add_plain_matches();
    return {};
  }

  // A file that is there and has a denied name. Mounts keep what the name rules keep, and its mode and times.
  struct plain_match {
    existing_match found;
    std::string reason;
    std::string root;
  };

  void add_plain_matches() {
    std::set<std::string_view> mounts;
    for (const auto& match : plain_)
      for (std::string_view path = match.found.path;
           path.size() > match.root.size() && mounts.insert(path).second;)
        path = parent_path(path);
    if (names_hold_ && mounts.size() > most_mounts) {
      request_.warnings.push_back(
          std::to_string(plain_.size()) +
          " existing files have protected names, too many to mount each read-only: the "
          "name rules alone keep them, but not their mode and times, nor the names of "
          "the directories that they are in");
      return;
    }
    for (const auto& match : plain_)
      add_write({match.found.path, match.found.type, false}, rule_origin::existing_match, match.reason, false,
                true);
  }

  result<void> add_names_below(const rule& root, const glob_set& shared, const glob_set& exempt,
                               const std::set<std::string>& skip) {
    auto reasons = request_.config.name_deny;
    std::vector<rule_origin> origins(shared.size(), rule_origin::mandatory);
    auto own = own_globs(root);
    if (!own) return own.error();
    glob_set merged;
    if (!own->empty()) merged = shared;
    for (auto& [g, deny] : *own) {
      merged.add(std::move(g));
      reasons.push_back({deny->pattern, deny->reason, {}, name_condition::none});
      origins.push_back(deny->origin);
    }
    const glob_set& deny = own->empty() ? shared : merged;
    const auto why = [&](std::size_t i) {
      return reasons[i].where.empty() ? reasons[i].reason : because(reasons[i]);
    };

    const auto state = state_at(deny, root);
    for (std::size_t i = 0; i < deny.size(); ++i)
      add_names(names_, rule_kind::name_deny, origins[i], why(i), root, texts_at(deny, state, i),
                reasons[i].condition);
    const auto exempt_state = state_at(exempt, root);
    for (std::size_t i = 0; i < exempt.size(); ++i) {
      const auto& entry = request_.config.name_exempt[i];
      add_names(exempts_, rule_kind::name_exempt, rule_origin::mandatory,
                "not denied: " + entry.reason + " (" + entry.where + ")", root,
                texts_at(exempt, exempt_state, i));
    }
    if (!on_linux_ || (request_.waived & CCBOX_RULE_FS_WRITE_DENY)) return {};

    const auto most = names_hold_ ? most_named_matches : request_.config.max_existing_matches;
    auto found = find_existing_matches({root.path, state, exempt_state, skip, most}, deny, exempt);
    if (!found) return found.error();
    for (const auto& match : found->matches) {
      const std::string reason =
          match.deny ? "existing match of " + quoted(reasons[*match.deny].pattern) + ": " + why(*match.deny)
                     : "cannot be looked into: denied as if a protected name were in it";
      if (match.type != path_type::symlink) {
        if (match.deny && reasons[*match.deny].condition == name_condition::none)
          plain_.push_back({match, reason, root.path});
        else
          add_write({match.path, match.type, false}, rule_origin::existing_match, reason, false, true);
        continue;
      }
      for (const auto& s : spellings(spell_path(match.path)))
        add_write(s, rule_origin::existing_match, reason, false, true);
    }
    for (const auto& link : found->links)
      add_link(link, deny, why);
    add_git_directories(*found);
    return {};
  }

  // Where a link stands for a part of a glob, the glob goes on in its target, and the link stays what it is.
  template <class Why>
  void add_link(const followed_link& link, const glob_set& deny, const Why& why) {
    const auto first = link.state.front().first;
    add_write({link.path, path_type::symlink, false}, rule_origin::existing_match,
              "stands for a part of " + quoted(deny[first].text()) + ": " + why(first), false, true);
    for (const auto& place : view_.places_of(link.target)) {
      if (place.mount->read_only) continue;
      rule target;
      target.guest_path = place.guest;
      for (const auto& [index, positions] : link.state)
        add_names(names_, rule_kind::name_deny, rule_origin::mandatory, why(index), target,
                  deny[index].remaining(positions));
    }
  }

  void add_names(std::vector<rule>& list, rule_kind kind, rule_origin origin, const std::string& reason,
                 const rule& root, const std::vector<std::string>& texts,
                 name_condition condition = name_condition::none) {
    for (const auto& text : texts) {
      rule r = make(kind, CCBOX_RULE_FS_NAME_DENY, origin, reason);
      r.path = text;
      r.guest_path = root.guest_path;
      r.glob = true;
      r.condition = condition;
      add(list, std::move(r));
    }
  }

  // What of the absolute write-deny globs lies below this mount, as globs relative to it.
  result<std::vector<std::pair<glob, const glob_deny*>>> own_globs(const rule& root) {
    std::vector<std::pair<glob, const glob_deny*>> out;
    if (!on_linux_) return out;
    for (const auto& deny : request_.denies.globs) {
      if (deny.kind != rule_kind::write_deny) continue;
      std::string_view fixed = deny.pattern;
      while (has_wildcard(fixed))
        fixed = parent_path(fixed);
      std::set<std::string> patterns = {deny.pattern};
      patterns.insert(join_path(spell_path(fixed).resolved, path_below(deny.pattern, fixed)));
      for (const auto& pattern : patterns) {
        const auto whole = compile_glob("./" + std::string(path_below(pattern, "/")));
        if (!whole) return error{error_code::invalid_argument, deny.reason + ": " + whole.error().what, {}};
        auto at = whole->start();
        bool covered = false;
        for (const auto& name : components(root.path)) {
          at = whole->step(at, fold_name(name));
          covered = covered || whole->accepts(at);
        }
        if (covered) add_write({root.path, root.type, false}, deny.origin, deny.reason, false, true);
        for (const auto& text : whole->remaining(at)) {
          auto below = compile_glob(text);
          if (!below) return below.error();
          out.emplace_back(std::move(*below), &deny);
        }
      }
    }
    return out;
  }

  // Denied as a whole, or another mount's: nothing to look for there.
  std::set<std::string> denied_already() const {
    std::set<std::string> out;
    for (const auto& deny : request_.denies.fixed) {
      const bool waived = deny.kind == rule_kind::read_deny && (request_.waived & CCBOX_RULE_FS_READ_DENY);
      if (!waived && deny.spelling.resolved_type == path_type::directory) out.insert(deny.spelling.resolved);
    }
    for (const auto& m : request_.mounts)
      if (const auto* around = view_.around(m))
        out.insert(join_path(around->path, path_below(m.guest_path, around->guest_path)));
    return out;
  }

  void add_git_directories(const existing_matches& found) {
    for (const auto& file : found.git_files)
      add_write({file, path_type::file, false}, rule_origin::existing_match,
                "mandatory deny: the file says where git finds its hooks and configuration", false, false);
    for (const auto& directory : found.git_directories) {
      if (view_.places_of(directory).empty())
        request_.warnings.push_back(
            "git inside will not find " + quoted(directory) +
            ", which a .git file names: no mount shows it. Bind it too; its hooks and "
            "configuration stay protected");
      const auto names = components(directory);
      if (std::find(names.begin(), names.end(), ".git") != names.end()) continue;  // name rules cover it
      for (const auto part : {"hooks", "config", "config.worktree", "commondir", "info/attributes"})
        for (const auto& s : spellings(spell_path(join_path(directory, part))))
          add_write(
              s, rule_origin::mandatory,
              "mandatory deny: git runs what it finds there; " + quoted(directory) + " is a git directory",
              false, true);
    }
  }

  // On every host, also where nothing is to be granted.
  result<void> check_exec_grants() const {
    for (std::size_t i = 0; i < request_.exec_grant_roots.size(); ++i) {
      const std::string what = exec_grant_key(i) + ": " + quoted(request_.exec_grant_roots[i]);
      const auto root = spell_path(request_.exec_grant_roots[i]);
      if (!root.blocked_by.empty())
        return error{error_code::permission_denied,
                     what + " cannot be reached: " + quoted(root.blocked_by) + " may not be searched",
                     "give this user access to it, or leave it out"};
      if (root.resolved_type == path_type::missing)
        return error{error_code::not_found, what + " does not exist",
                     "create it first, or leave it out: what is asked for is never skipped silently"};
    }
    return {};
  }

  static std::string exec_grant_key(std::size_t index) {
    return "execGrantRoots[" + std::to_string(index) + "]";
  }

  void add_exec_rules() {
    for (const auto& entry : request_.config.exec_deny) {
      std::string path = entry.pattern;
      if (path.starts_with("~/")) path = join_path(request_.host.home, path.substr(2));
      rule r = make(rule_kind::exec_deny, CCBOX_RULE_EXEC_DENY, rule_origin::mandatory, because(entry));
      r.glob = has_wildcard(entry.pattern);
      if (r.glob) {
        r.path = r.guest_path = path;
        add(exec_, std::move(r));
        continue;
      }
      for (const auto& s : spellings(spell_path(path)))
        add_at_places(exec_, r, s, places_of(s.path));
    }
    for (std::size_t i = 0; i < request_.exec_grant_roots.size(); ++i) {
      const rule r = make(rule_kind::exec_grant, CCBOX_RULE_EXEC_DENY, rule_origin::spec, exec_grant_key(i));
      for (const auto& s : spellings(spell_path(request_.exec_grant_roots[i])))
        add_at_places(exec_, r, s, places_of(s.path));
    }
  }

  const deny_request& request_;
  mount_view view_;
  bool on_linux_;
  bool names_hold_;  // a launch is refused where they do not
  std::vector<plain_match> plain_;
  std::vector<rule> read_, write_, names_, exempts_, exec_;
  std::set<std::tuple<rule_kind, std::string, std::string>> seen_;
};

}  // namespace

result<std::vector<rule>> compile_denies(const deny_request& request) {
  return deny_compiler(request).run();
}

result<name_rules> compile_name_rules(const policy_config& config) {
  auto deny = compile_globs(config.name_deny);
  if (!deny) return deny.error();
  auto exempt = compile_globs(config.name_exempt);
  if (!exempt) return exempt.error();
  return name_rules{std::move(*deny), std::move(*exempt)};
}

void restrict_mounts_by_name(std::vector<rule>& mounts, const policy_config& config, const name_rules& names,
                             std::vector<std::string>& warnings) {
  for (auto& m : mounts) {
    if (m.read_only || m.origin == rule_origin::runner_state) continue;
    const auto parts = components(m.path);
    glob_set::state state, exempt_state;
    std::vector<std::uint32_t> accepted, exempted;
    const config_entry* covered_by = nullptr;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool is_file = i + 1 == parts.size() && m.type == path_type::file;
      accepted.clear();
      exempted.clear();
      state = names.deny.step(state, parts[i], &accepted);
      exempt_state = names.exempt.step(exempt_state, parts[i], &exempted);
      for (const auto index : accepted) {
        const auto& entry = config.name_deny[index];
        // Whoever mounts the directory `site.key` means it; a file of a denied name, or what lies in a denied
        // place (`.git/hooks/...`), stays denied.
        const bool is_place = entry.pattern.find('/') != std::string::npos;
        if ((is_file || is_place) && exempted.empty()) covered_by = &entry;
      }
    }
    if (!covered_by) continue;
    m.read_only = true;
    m.origin = rule_origin::mandatory;
    warnings.push_back(m.reason + ": " + quoted(m.path) + " is mounted read-only: " + because(*covered_by));
    m.reason += "; read-only: " + because(*covered_by);
  }
}

}  // namespace ccbox
