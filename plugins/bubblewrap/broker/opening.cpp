#include "broker/opening.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include "broker/git_directory.hpp"

namespace ccbox::bubblewrap {

namespace {

constexpr int most_links = 40;
constexpr int unnamed = O_TMPFILE & ~O_DIRECTORY;

bool only_reads(int flags) {
  return (flags & O_ACCMODE) == O_RDONLY && (flags & O_TRUNC) == 0;
}

outcome open_unnamed(desk& at, const caller& who, const open_request& asked, descriptor& opened) {
  // Flags that make no sense, whatever the path.
  if ((asked.flags & O_TMPFILE) != O_TMPFILE || (asked.flags & O_ACCMODE) == O_RDONLY)
    return outcome::kernel();
  place in;
  const auto step = at.paths.locate_directory(who, asked.where, in);
  if (!step.is_done()) return step;
  if (in.directory.empty() || in.directory.front() != '/' || at.paths.is_open(in.directory))
    return outcome::kernel();
  at.take_umask_of(who);
  opened = descriptor(::openat(in.parent.get(), ".", asked.flags | O_CLOEXEC, asked.mode));
  return opened ? outcome() : outcome::failure(errno);
}

// Gives back the state that opening without waiting has left in the file.
outcome settle(const open_request& asked, descriptor& opened) {
  if ((asked.flags & O_NONBLOCK) == 0) ::fcntl(opened.get(), F_SETFL, asked.flags);
  return {};
}

// A descriptor of the caller's, opened once more: the name that its file has now decides.
outcome reopen(desk& at, const caller& who, const open_request& asked, int number, descriptor& opened) {
  const auto object = who.descriptor_number(number);
  if (!object) return outcome::failure(ENOENT);
  const auto path = who.proc().path_of(object.get());
  const auto slash = path.rfind('/');
  if (path.empty() || path.front() != '/' || slash + 1 == path.size()) return outcome::kernel();
  place of;
  of.directory = slash == 0 ? "/" : path.substr(0, slash);
  of.name = path.substr(slash + 1);
  if (at.paths.is_open(of.directory)) return outcome::kernel();
  if (!only_reads(asked.flags)) {
    const auto step = hold_parent(of);
    if (!step.is_done()) return step;
    const auto* rule = at.forbids(of);
    if (!rule) rule = guarded_by_git(at, of, making::file);
    if (rule) return at.deny(who, "write", of, *rule);
  }
  if ((asked.flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL)) return outcome::failure(EEXIST);
  if (asked.flags & O_NOFOLLOW) return outcome::failure(ELOOP);
  char link[16];
  std::snprintf(link, sizeof link, "%d", object.get());
  opened = descriptor(::openat(who.proc().own_descriptors(), link,
                               (asked.flags & ~(O_CREAT | O_EXCL)) | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
  return opened ? settle(asked, opened) : outcome::failure(errno);
}

bool is_fifo(const place& at) {
  struct stat status;
  return ::fstatat(at.parent.get(), at.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISFIFO(status.st_mode);
}

// Where a rule forbids the name: nothing of it is made or written, what is there may be read.
outcome open_forbidden(desk& at, const caller& who, const open_request& asked, const place& in,
                       const name_rule& rule, int& flags, bool& made) {
  const bool creates = (asked.flags & O_CREAT) != 0;
  const bool is_there = exists(in);
  if (is_there && creates && (asked.flags & O_EXCL)) return outcome::failure(EEXIST);
  if (!is_there && !creates) return outcome::failure(ENOENT);
  if (is_there && only_reads(asked.flags)) {
    flags &= ~O_CREAT;
    return {};
  }
  if (!is_there && rule.when == name_rule::condition::is_new) {
    flags |= O_EXCL;  // nothing that comes into its place meanwhile
    return {};
  }
  if (!is_there && rule.when == name_rule::condition::git_config) {
    // libgit2 begins with an empty file. That runs nothing, and what reads only stays empty.
    at.take_umask_of(who);
    const descriptor empty(::openat(in.parent.get(), in.name.c_str(),
                                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, asked.mode));
    if (!empty) return outcome::failure(errno);
    made = true;
    flags &= ~(O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC);
    return {};
  }
  return at.deny(who, is_there ? "write" : "create", in, rule);
}

}  // namespace

outcome open_file(desk& at, const caller& who, open_request asked, opened_file& opened) {
  if (asked.flags & unnamed) return open_unnamed(at, who, asked, opened.file);
  const bool exclusive = (asked.flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
  const bool follows = !exclusive && (asked.flags & O_NOFOLLOW) == 0;
  for (int links = 0; links <= most_links; ++links) {
    place in;
    auto step = at.locate(who, asked.where, in);
    if (!step.is_done()) return step;
    if (!in.slashes.empty()) return outcome::kernel();  // a directory: never opened for writing
    if (at.paths.is_open(in.directory)) {
      // The kernel says what limits of openat2's mean for such a link.
      if (asked.where.resolve != 0) return outcome::kernel();
      if (const int number = at.paths.own_descriptor(who, in); number >= 0)
        return reopen(at, who, asked, number, opened.file);
      // A link from there may lead to where names are guarded.
      if (!follows || !at.paths.follow(in, asked.where).is_done()) return outcome::kernel();
      continue;
    }
    int flags = asked.flags;
    bool made = false;
    const auto* rule = at.forbids(in);
    if (!rule) rule = guarded_by_git(at, in, making::file);
    if (rule) {
      step = open_forbidden(at, who, asked, in, *rule, flags, made);
      if (!step.is_done()) return step;
    }
    constexpr int always = O_NOFOLLOW | O_NOCTTY | O_CLOEXEC;
    if (flags & O_CREAT) {
      // As if nothing were there, at first: so it is known what has been made.
      at.take_umask_of(who);
      opened.file =
          descriptor(::openat(in.parent.get(), in.name.c_str(), flags | always | O_EXCL, asked.mode));
      made = made || opened.file;
      if (!opened.file && (exclusive || errno != EEXIST)) return outcome::failure(errno);
    }
    if (!opened.file) {
      // It may be a FIFO or a device, and nothing may make us wait.
      opened.file =
          descriptor(::openat(in.parent.get(), in.name.c_str(), flags | always | O_NONBLOCK, asked.mode));
      if (opened.file) settle(asked, opened.file);
    }
    if (opened.file) {
      if (made) opened.made = std::move(in);
      return {};
    }
    const int failure = errno;
    if (failure == ELOOP && follows) {
      step = at.paths.follow(in, asked.where);
      if (!step.is_done()) return step;
      continue;
    }
    opened.waits_for_reader =
        failure == ENXIO && (asked.flags & (O_ACCMODE | O_NONBLOCK)) == O_WRONLY && is_fifo(in);
    return outcome::failure(failure);
  }
  return outcome::failure(ELOOP);
}

void take_back(const opened_file& opened) {
  if (!opened.made.parent) return;
  struct stat ours, there;
  const auto& in = opened.made;
  if (::fstat(opened.file.get(), &ours) == 0 &&
      ::fstatat(in.parent.get(), in.name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
      ours.st_ino == there.st_ino && ours.st_dev == there.st_dev)
    ::unlinkat(in.parent.get(), in.name.c_str(), 0);
}

outcome truncate_file(desk& at, const caller& who, path_argument where, off_t length) {
  if (length < 0) return outcome::failure(EINVAL);
  open_request asked;
  asked.where = std::move(where);
  asked.flags = O_WRONLY | O_NONBLOCK;
  opened_file opened;
  const auto step = open_file(at, who, std::move(asked), opened);
  if (step.what == outcome::kind::failed && step.error_number == ENXIO) return outcome::failure(EINVAL);
  if (!step.is_done()) return step;
  return ::ftruncate(opened.file.get(), length) == 0 ? outcome() : outcome::failure(errno);
}

}  // namespace ccbox::bubblewrap
