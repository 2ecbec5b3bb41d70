#include "broker/renaming.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "broker/git_config_file.hpp"
#include "broker/git_directory.hpp"

namespace ccbox::bubblewrap {

namespace {

constexpr std::size_t most_entries = 20000;
constexpr int most_levels = 100;

const name_rule too_large{"", "a directory with too many entries to look through for protected names"};

struct directory_closer {
  void operator()(DIR* stream) const { ::closedir(stream); }
};
using directory_stream = std::unique_ptr<DIR, directory_closer>;

directory_stream list(int parent, const char* name) {
  const int fd = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return nullptr;
  DIR* stream = ::fdopendir(fd);
  if (!stream) ::close(fd);
  return directory_stream(stream);
}

// A tree that goes from one place to another.
class moved_tree {
 public:
  explicit moved_tree(const name_rules& rules) : rules_(rules) {}

  // The first rule that forbids an entry below `name` of `parent`, where it is or where it would be; or null.
  // `here` and `there`: states in that directory.
  const name_rule* forbidden(int parent, const char* name, const name_rules::state& here,
                             const name_rules::state& there, int level = 0) {
    if (here == there) return nullptr;
    if (level > most_levels) return &too_large;
    const auto stream = list(parent, name);
    if (!stream) return &too_large;  // what cannot be looked into is not assumed to be empty
    while (const dirent* entry = ::readdir(stream.get())) {
      const char* const child = entry->d_name;
      if (std::strcmp(child, ".") == 0 || std::strcmp(child, "..") == 0) continue;
      if (++seen_ > most_entries) return &too_large;
      if (const auto* rule = rules_.forbids(there, child)) return rule;
      if (const auto* rule = rules_.forbids(here, child)) return rule;
      const auto type = type_of(::dirfd(stream.get()), *entry);
      if (type == DT_LNK)
        if (const auto* rule = rules_.leads_to(there, child)) return rule;
      if (type != DT_DIR) continue;
      const auto* rule = forbidden(::dirfd(stream.get()), child, rules_.into(here, child),
                                   rules_.into(there, child), level + 1);
      if (rule) return rule;
    }
    return nullptr;
  }

 private:
  static unsigned char type_of(int directory, const dirent& entry) {
    struct stat status;
    if (entry.d_type != DT_UNKNOWN) return entry.d_type;
    if (::fstatat(directory, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) return DT_DIR;
    return S_ISDIR(status.st_mode) ? DT_DIR : S_ISLNK(status.st_mode) ? DT_LNK : DT_REG;
  }

  const name_rules& rules_;
  std::size_t seen_ = 0;
};

// What lies at `what` may leave that place for `target`. Null: yes, or there is nothing.
const name_rule* objection(const desk& at, const place& what, const place& target) {
  const auto& rules = at.rules;
  struct stat status;
  if (::fstatat(what.parent.get(), what.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return nullptr;
  // A copy: the next text may make the rules forget this one.
  const auto here = rules.at(what.directory);
  const auto& there = rules.at(target.directory);
  if (const auto* rule = rules.forbids(here, what.name)) return rule;
  if (const auto* rule = rules.forbids(there, target.name)) return rule;
  if (S_ISLNK(status.st_mode)) return rules.leads_to(there, target.name);
  if (!S_ISDIR(status.st_mode)) return nullptr;
  return moved_tree(rules).forbidden(what.parent.get(), what.name.c_str(), rules.into(here, what.name),
                                     rules.into(there, target.name));
}

bool is_git_config(const name_rule& rule) {
  return rule.when == name_rule::condition::git_config;
}

// What git directories of any name have to say. Nothing: go on.
std::optional<outcome> into_git_directory(desk& at, const caller& who, const place& source,
                                          const place& target, unsigned flags) {
  if (const auto* rule = guarded_by_git(at, target, making::other)) {
    if (flags == 0 && is_git_config(*rule)) return install_git_config(at, who, source, target, *rule);
    return at.deny(who, "rename", target, *rule);
  }
  if (flags & RENAME_EXCHANGE)
    if (const auto* rule = guarded_by_git(at, source, making::other))
      return at.deny(who, "rename", source, *rule);
  for (const auto* each : {&target, &source}) {
    const auto step = before_git_directory(at, who, "rename", *each);
    if (!step.is_done()) return step;
  }
  return std::nullopt;
}

}  // namespace

outcome rename(desk& at, const caller& who, const path_argument& from, const path_argument& to,
               unsigned flags) {
  place source, target;
  auto step = at.locate(who, from, source);
  if (!step.is_done()) return step;
  step = at.locate(who, to, target);
  if (!step.is_done()) return step;
  if (at.paths.is_open(source.directory) && at.paths.is_open(target.directory)) return outcome::kernel();
  // Not for the call below to find out: somebody outside may make the file in between.
  struct stat status;
  if (::fstatat(source.parent.get(), source.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return outcome::failure(errno);
  if (const auto* rule = objection(at, source, target)) {
    if (flags == 0 && is_git_config(*rule) && rule == at.forbids(target) && !at.forbids(source))
      return install_git_config(at, who, source, target, *rule);
    if ((flags & RENAME_NOREPLACE) && exists(target)) return outcome::failure(EEXIST);
    return at.deny(who, "rename", at.forbids(source) ? source : target, *rule);
  }
  if (flags & RENAME_EXCHANGE) {
    if (const auto* rule = objection(at, target, source)) return at.deny(who, "rename", target, *rule);
  }
  if (const auto answer = into_git_directory(at, who, source, target, flags)) return *answer;
  const auto done = ::syscall(SYS_renameat2, source.parent.get(), source.argument().c_str(),
                              target.parent.get(), target.argument().c_str(), flags);
  return done == 0 ? outcome() : outcome::failure(errno);
}

}  // namespace ccbox::bubblewrap
