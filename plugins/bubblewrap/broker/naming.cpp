#include "broker/naming.hpp"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "broker/git_directory.hpp"

namespace ccbox::bubblewrap {

namespace {

outcome of(int result) {
  return result == 0 ? outcome() : outcome::failure(errno);
}

// Where a new name is to be made. Done: the kernel may be asked to.
outcome prepare(desk& at, const caller& who, const char* operation, const path_argument& where, bool is_link,
                making what, place& in) {
  const auto step = at.locate(who, where, in);
  if (!step.is_done()) return step;
  if (at.paths.is_open(in.directory)) return outcome::kernel();
  const auto& state = at.rules.at(in.directory);
  const auto* rule = at.rules.forbids(state, in.name);
  if (!rule && is_link) rule = at.rules.leads_to(state, in.name);
  if (!rule) rule = guarded_by_git(at, in, what);
  if (!rule) return before_git_directory(at, who, operation, in);
  return exists(in) ? outcome::failure(EEXIST) : at.deny(who, operation, in, *rule);
}

// The file that is to get another name, as what linkat is asked about: `path` relative to `directory`.
struct link_source {
  descriptor held;
  int directory = -1;
  std::string path;
  int flags = 0;
  bool is_symlink = false;
};

outcome check_source(desk& at, const caller& who, const place& in) {
  const auto* rule = at.forbids(in);
  if (!rule) rule = guarded_by_git(at, in, making::other);
  return rule ? at.deny(who, "link", in, *rule) : outcome();
}

// By descriptor: the name that its file has now decides.
outcome source_of_object(desk& at, const caller& who, descriptor object, link_source& source) {
  const auto path = who.proc().path_of(object.get());
  const auto slash = path.rfind('/');
  if (path.empty() || path.front() != '/') return outcome::kernel();
  place in;
  in.directory = slash == 0 ? "/" : path.substr(0, slash);
  in.name = path.substr(slash + 1);
  auto step = hold_parent(in);
  if (!step.is_done()) return step;
  step = check_source(at, who, in);
  if (!step.is_done()) return step;
  struct stat status;
  if (::fstat(object.get(), &status) != 0) return outcome::failure(errno);
  source.is_symlink = S_ISLNK(status.st_mode);
  char number[16];
  std::snprintf(number, sizeof number, "%d", object.get());
  source.held = std::move(object);
  source.directory = who.proc().own_descriptors();
  source.path = number;
  source.flags = AT_SYMLINK_FOLLOW;
  return {};
}

outcome find_source(desk& at, const caller& who, path_argument from, int flags, link_source& source) {
  if (from.path.empty() && (flags & AT_EMPTY_PATH)) {
    auto object = from.directory_fd == AT_FDCWD ? descriptor() : who.descriptor_number(from.directory_fd);
    if (!object) return outcome::failure(from.directory_fd == AT_FDCWD ? EPERM : EBADF);
    return source_of_object(at, who, std::move(object), source);
  }
  constexpr int most_links = 40;
  for (int links = 0; links <= most_links; ++links) {
    place in;
    auto step = at.locate(who, from, in);
    if (!step.is_done()) return step;
    struct stat status;
    const bool found = ::fstatat(in.parent.get(), in.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (const int number = at.paths.own_descriptor(who, in); number >= 0 && (flags & AT_SYMLINK_FOLLOW)) {
      auto object = who.descriptor_number(number);
      if (!object) return outcome::failure(ENOENT);
      return source_of_object(at, who, std::move(object), source);
    }
    if (!found) return outcome::failure(errno);
    if (S_ISLNK(status.st_mode) && (flags & AT_SYMLINK_FOLLOW)) {
      step = at.paths.follow(in, from);
      if (!step.is_done()) return step;
      continue;
    }
    step = check_source(at, who, in);
    if (!step.is_done()) return step;
    source.is_symlink = S_ISLNK(status.st_mode);
    source.path = in.argument();
    source.held = std::move(in.parent);
    source.directory = source.held.get();
    return {};
  }
  return outcome::failure(ELOOP);
}

}  // namespace

outcome make_directory(desk& at, const caller& who, const path_argument& where, mode_t mode) {
  place in;
  const auto step = prepare(at, who, "mkdir", where, false, making::directory, in);
  if (!step.is_done()) return step;
  at.take_umask_of(who);
  return of(::mkdirat(in.parent.get(), in.argument().c_str(), mode));
}

outcome make_node(desk& at, const caller& who, const path_argument& where, mode_t mode, dev_t device) {
  place in;
  const auto step = prepare(at, who, "mknod", where, false, making::other, in);
  if (!step.is_done()) return step;
  at.take_umask_of(who);
  return of(::mknodat(in.parent.get(), in.argument().c_str(), mode, device));
}

outcome make_symlink(desk& at, const caller& who, const path_argument& where, const std::string& target) {
  place in;
  const auto step = prepare(at, who, "symlink", where, true, making::other, in);
  if (!step.is_done()) return step;
  return of(::symlinkat(target.c_str(), in.parent.get(), in.argument().c_str()));
}

outcome remove(desk& at, const caller& who, const path_argument& where, int flags) {
  if (flags & ~AT_REMOVEDIR) return outcome::kernel();
  place in;
  const auto step = at.locate(who, where, in);
  if (!step.is_done()) return step;
  if (at.paths.is_open(in.directory)) return outcome::kernel();
  const auto* rule = at.forbids(in);
  // Without its configuration a repository runs nothing. What the owner has is a mount, which stays.
  if (rule && !rule->may_go())
    return exists(in) ? at.deny(who, "remove", in, *rule) : outcome::failure(ENOENT);
  if (::unlinkat(in.parent.get(), in.argument().c_str(), flags) == 0) return {};
  return rule && errno == EBUSY ? at.deny(who, "remove", in, *rule) : outcome::failure(errno);
}

outcome make_link(desk& at, const caller& who, path_argument from, const path_argument& to, int flags) {
  if (flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH)) return outcome::kernel();
  link_source source;
  auto step = find_source(at, who, std::move(from), flags, source);
  if (!step.is_done()) return step;
  place in;
  step = prepare(at, who, "link", to, source.is_symlink, making::other, in);
  if (!step.is_done()) return step;
  return of(
      ::linkat(source.directory, source.path.c_str(), in.parent.get(), in.argument().c_str(), source.flags));
}

}  // namespace ccbox::bubblewrap
