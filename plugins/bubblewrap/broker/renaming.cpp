#include "broker/renaming.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "broker/git_config.hpp"

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

// Nothing: what is there is no such file, or errno says why it cannot be read.
std::optional<std::string> read_config(const place& from, struct stat& status) {
  constexpr std::size_t most = std::size_t{1} << 20;
  const descriptor file(::openat(from.parent.get(), from.name.c_str(),
                                 O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file || ::fstat(file.get(), &status) != 0) return std::nullopt;
  errno = EACCES;
  if (!S_ISREG(status.st_mode)) return std::nullopt;
  std::string text(most + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const auto got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  errno = EFBIG;
  if (size > most) return std::nullopt;
  text.resize(size);
  return text;
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto put = ::write(fd, text.data(), text.size());
    if (put < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

// Configuration of git comes into place: not the file that the caller has made, which it may still hold open,
// have mapped or have under another name, but one of the broker's with the bytes that were looked at. Nobody
// inside opens it for writing: that, too, the broker would have to do, and it does one thing at a time.
outcome install_git_config(desk& at, const caller& who, const place& source, const place& target,
                           const name_rule& rule) {
  const auto refuse = [&](const std::string& why) {
    auto said = rule;
    said.reason = why + "; " + rule.reason;
    return at.deny(who, "rename", target, said);
  };
  if (source.directory != target.directory || !source.slashes.empty() || !target.slashes.empty())
    return refuse("configuration comes into place from a file beside it");
  struct stat status;
  const auto text = read_config(source, status);
  if (!text)
    return errno == EFBIG || errno == EACCES || errno == ELOOP
               ? refuse("not a file of at most 1 MiB that can be read")
               : outcome::failure(errno);
  if (const auto why = objection_to_git_config(*text, target.directory); !why.empty()) return refuse(why);

  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number))
    return outcome::failure(EAGAIN);
  const auto made = ".ccbox-" + std::to_string(number);
  descriptor file(::openat(target.parent.get(), made.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return outcome::failure(errno);
  const bool is_written = write_all(file.get(), *text) && ::fchmod(file.get(), status.st_mode & 0777) == 0;
  if (is_written && ::syscall(SYS_renameat2, target.parent.get(), made.c_str(), target.parent.get(),
                              target.name.c_str(), 0) == 0) {
    ::unlinkat(source.parent.get(), source.name.c_str(), 0);
    return {};
  }
  const int failure = errno;
  ::unlinkat(target.parent.get(), made.c_str(), 0);
  return failure == EBUSY ? at.deny(who, "rename", target, rule) : outcome::failure(failure);
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
  if (const auto* rule = objection(at, source, target)) {
    if (flags == 0 && is_git_config(*rule) && rule == at.forbids(target) && !at.forbids(source))
      return install_git_config(at, who, source, target, *rule);
    if ((flags & RENAME_NOREPLACE) && exists(target)) return outcome::failure(EEXIST);
    return at.deny(who, "rename", at.forbids(source) ? source : target, *rule);
  }
  if (flags & RENAME_EXCHANGE) {
    if (const auto* rule = objection(at, target, source)) return at.deny(who, "rename", target, *rule);
  } else if (const auto* rule = exists(target) ? at.forbids(target) : nullptr) {
    return at.deny(who, "rename", target, *rule);
  }
  const auto done = ::syscall(SYS_renameat2, source.parent.get(), source.argument().c_str(),
                              target.parent.get(), target.argument().c_str(), flags);
  return done == 0 ? outcome() : outcome::failure(errno);
}

}  // namespace ccbox::bubblewrap
