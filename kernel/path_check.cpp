// check_path: what a policy says of one path. It looks at the host for symbolic links, and for whether there
// is anything at all.
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <optional>

#include "glob.hpp"
#include "mount_view.hpp"
#include "path_operations.hpp"
#include "policy_mounts.hpp"

namespace ccbox {

namespace {

constexpr int most_links = 40;

class path_question {
 public:
  path_question(const policy& p, std::string_view path) : policy_(p), view_(p.rules), asked_(path) {
    unconfined_ = p.backend_request == "none";
    binds_only_ = p.required & CCBOX_RULE_FS_BINDS_ONLY;
  }

  path_answer answer() {
    if (asked_.empty() || asked_.find('\0') != std::string::npos) {
      out_.explanation = quoted(asked_) + " is no path";
      return out_;
    }
    if (!asked_.starts_with('/')) asked_ = join_path(policy_.workdir, asked_);
    if (const auto too_long = refuse_length(asked_)) {
      out_.explanation = *too_long;
      return out_;
    }
    if (unconfined_) {
      out_.visible = out_.readable = out_.writable = out_.creatable = out_.unconfined = true;
      out_.resolved = normalise_path(asked_);
      look();
      out_.explanation = quoted(asked_) + ": backend none has no rules; the user's own permissions count";
      return out_;
    }
    const auto path = follow_links(asked_);
    if (!path) {
      out_.explanation = quoted(asked_) + " is a loop of symbolic links";
      return out_;
    }
    path_ = *path;
    decide();
    out_.resolved = path_;
    out_.is_private = private_;
    look();
    explain();
    return out_;
  }

 private:
  // What no system call takes. The limits of the kernel; a file system may have smaller ones.
  static std::optional<std::string> refuse_length(std::string_view path) {
    std::size_t longest = 0;
    for (auto rest = path; !rest.empty();) {
      const auto end = std::min(rest.find('/'), rest.size());
      longest = std::max(longest, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    const auto refusal = [](const char* what, std::size_t bytes, std::size_t most) {
      return "no system call takes it: " + std::string(what) + " of " + std::to_string(bytes) +
             " bytes, and the kernel takes " + std::to_string(most) + " at most";
    };
    if (longest > NAME_MAX) return refusal("it has a name", longest, NAME_MAX);
    if (path.size() >= PATH_MAX) return refusal("it is a path", path.size(), PATH_MAX - 1);
    return std::nullopt;
  }

  // /proc/self/cwd/x is ./x, /proc/self/root/x is /x: as the real path.
  static std::string undo_magic(const std::string& path, const std::string& workdir) {
    const std::string_view text = path;
    if (!text.starts_with("/proc/")) return path;
    const auto end = text.find('/', 6);
    if (end == std::string_view::npos) return path;
    const auto who = text.substr(6, end - 6);
    const bool is_process = who == "self" || who == "thread-self" ||
                            who.find_first_not_of("0123456789") == std::string_view::npos;
    const auto rest = text.substr(end);
    if (!is_process) return path;
    if (is_within(rest, "/cwd")) return normalise_path(join_path(workdir, path_below(rest, "/cwd")));
    if (is_within(rest, "/root")) return normalise_path(join_path("/", path_below(rest, "/root")));
    return path;
  }

  // The path inside with its links resolved inside, the last one too.
  std::optional<std::string> follow_links(const std::string& path) const {
    std::string done = "/";
    std::string rest = undo_magic(normalise_path(path), policy_.workdir);
    for (int links = 0; links <= most_links;) {
      const auto below = path_below(rest, "/");
      if (below.empty()) return done;
      const std::string name(below.substr(0, below.find('/')));
      const std::string after(below.substr(std::min(name.size(), below.size())));
      rest = after.empty() ? "/" : after;
      if (name == "..") {
        done = std::string(parent_path(done));
        continue;
      }
      std::string next = join_path(done, name);
      const auto host = binds_only_ ? view_.host_path(next) : std::optional<std::string>(next);
      char target[PATH_MAX];
      const auto length = host && !is_private(next) ? ::readlink(host->c_str(), target, sizeof target) : -1;
      if (length <= 0) {
        done = std::move(next);
        continue;
      }
      ++links;
      const std::string text(target, static_cast<std::size_t>(length));
      rest = normalise_path("/" + join_path(text, path_below(rest, "/")));
      if (text.front() == '/') {
        done = "/";
        rest = undo_magic(rest, policy_.workdir);
      }
    }
    return std::nullopt;
  }

  // Memory of the session, or views that the enclosure makes of itself.
  bool is_private(std::string_view path) const {
    if (!binds_only_) return false;
    if (is_within(path, "/proc") || is_within(path, "/dev")) return true;
    const auto* mount = view_.over(path);
    for (const std::string_view own :
         {std::string_view(policy_.home), std::string_view(policy_.tmpdir), std::string_view("/run"),
          std::string_view("/tmp"), std::string_view("/var/tmp")})
      if (is_within(path, own) && (!mount || !is_within(mount->guest_path, own)) && is_own(own)) return true;
    return false;
  }

  // The session's own directories give way to a mount that covers them; /run does not.
  bool is_own(std::string_view directory) const {
    if (directory == "/run" || is_within(directory, "/run/ccbox")) return true;
    const auto* mount = view_.over(directory);
    return !mount || mount->origin == rule_origin::system;
  }

  std::size_t index_of(const rule* r) const { return static_cast<std::size_t>(r - policy_.rules.data()); }

  // At what is there, if it can be seen.
  void look() {
    const auto host = binds_only_ && !unconfined_ ? view_.host_path(out_.resolved)
                                                  : std::optional<std::string>(out_.resolved);
    struct stat status {};
    if (!host || private_) return;
    const bool seen = ::lstat(host->c_str(), &status) == 0;
    // A directory that may not be searched hides what is in it.
    out_.exists = seen || (errno != ENOENT && errno != ENOTDIR);
    out_.is_directory = seen && S_ISDIR(status.st_mode);
  }

  void decide() {
    if (is_private(path_)) {
      private_ = true;
      out_.visible = out_.readable = true;
      out_.writable = out_.creatable = !is_within(path_, "/proc") && !is_within(path_, "/dev");
      return;
    }
    const auto* mount = view_.over(path_);
    if (mount) out_.deciding_rules.push_back(index_of(mount));
    if (binds_only_ && !mount) return;
    out_.visible = out_.readable = true;
    out_.writable = out_.creatable = mount && !mount->read_only && mount->type != path_type::symlink;
    if (mount && mount->guest_path == path_) out_.creatable = false;
    const bool makes_names = out_.writable || out_.creatable;
    apply_denies();
    if (makes_names) find_name_rule();
    if ((out_.writable || out_.creatable) && out_.name_rule) {
      const bool is_new = out_.name_condition == name_condition::is_new && is_missing();
      out_.writable = false;
      out_.creatable = out_.creatable && is_new;
      out_.deciding_rules.push_back(*out_.name_rule);
    }
  }

  bool applies(const rule& r) const { return !(r.bit & policy_.waived) && !r.guest_path.empty(); }

  bool covers(const rule& r) const {
    if (!r.glob) return is_within(path_, r.guest_path);
    const auto compiled = compile_glob("./" + std::string(path_below(r.guest_path, "/")));
    return compiled && compiled->matches_within(path_below(path_, "/"));
  }

  void apply_denies() {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < policy_.rules.size(); ++i) {
      const auto& r = policy_.rules[i];
      if (r.kind != rule_kind::read_deny && r.kind != rule_kind::write_deny) continue;
      if (!applies(r) || !covers(r)) continue;
      if (r.kind == rule_kind::read_deny) out_.readable = false;
      out_.writable = out_.creatable = false;
      found.push_back(i);
    }
    std::stable_sort(found.begin(), found.end(), [&](std::size_t a, std::size_t b) {
      return policy_.rules[a].guest_path.size() < policy_.rules[b].guest_path.size();
    });
    out_.deciding_rules.insert(out_.deciding_rules.end(), found.begin(), found.end());
  }

  // As the broker picks it: one without a condition counts before others.
  void find_name_rule() {
    for (std::size_t i = 0; i < policy_.rules.size(); ++i) {
      const auto& r = policy_.rules[i];
      if (r.kind == rule_kind::name_exempt && applies(r) && !out_.exempt_rule && exempts(r, path_))
        out_.exempt_rule = i;
      if (r.kind != rule_kind::name_deny || !applies(r) || !is_within(path_, r.guest_path)) continue;
      if (out_.name_rule &&
          (out_.name_condition == name_condition::none || r.condition != name_condition::none))
        continue;
      if (!(r.glob ? is_denied_by(r) : is_within(fold_name(path_), fold_name(r.path)))) continue;
      out_.name_rule = i;
      out_.name_condition = r.condition;
    }
  }

  // The path or a directory that leads to it matches, and no exempt names that very one.
  bool is_denied_by(const rule& r) const {
    const auto compiled = compile_glob(r.path);
    if (!compiled) return true;
    auto at = compiled->start();
    std::string place = r.guest_path;
    for (auto below = path_below(path_, r.guest_path); !below.empty();) {
      const std::string name(below.substr(0, below.find('/')));
      below = path_below(below, name);
      place = join_path(place, name);
      at = compiled->step(at, fold_name(name));
      if (compiled->accepts(at) && !is_exempt(place)) return true;
    }
    return false;
  }

  bool is_exempt(const std::string& place) const {
    return std::any_of(policy_.rules.begin(), policy_.rules.end(),
                       [&](const rule& r) { return r.kind == rule_kind::name_exempt && exempts(r, place); });
  }

  static bool exempts(const rule& r, const std::string& place) {
    if (!is_within(place, r.guest_path)) return false;
    const auto compiled = compile_glob(r.path);
    return compiled && compiled->matches(path_below(place, r.guest_path));
  }

  // Only what is certain: a directory that may not be searched hides what is in it.
  bool is_missing() const {
    const auto host = binds_only_ ? view_.host_path(path_) : std::optional<std::string>(path_);
    struct stat status {};
    return host && ::lstat(host->c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR);
  }

  void explain() {
    std::string& text = out_.explanation;
    text = quoted(path_);
    if (path_ != normalise_path(asked_)) text += " (" + quoted(asked_) + " leads there)";
    if (private_) {
      if (is_within(path_, "/proc") || is_within(path_, "/dev"))
        text += " is the enclosure's own, fresh at every start";
      else
        text += " is memory of the session: free to use, gone when it ends, not the host's";
      return;
    }
    if (!out_.visible) {
      text += " is not visible: no mount shows it";
      return;
    }
    if (!out_.readable)
      text += " cannot be read or written";
    else if (out_.writable || (out_.creatable && !out_.name_rule))
      text += " can be read and written";
    else if (out_.creatable)
      text += " can be made once and not written to afterwards";
    else
      text += " can be read, not written";
    if (!unconfined_ && is_missing()) text += ", but nothing is there";
    if (!out_.deciding_rules.empty()) {
      const auto& r = policy_.rules[out_.deciding_rules.back()];
      text += ": " + r.reason;
      if (r.kind == rule_kind::name_deny) text += "; the rule is " + quoted(r.path);
    }
  }

  const policy& policy_;
  mount_view view_;
  std::string asked_;
  std::string path_;
  bool unconfined_ = false;
  bool binds_only_ = false;
  bool private_ = false;
  path_answer out_;
};

}  // namespace

path_answer check_path(const policy& p, std::string_view path) {
  auto answer = path_question(p, path).answer();
  answer.operations = operations_on(p, answer);
  return answer;
}

}  // namespace ccbox
