#include "broker/desk.hpp"

#include <fcntl.h>

#include <cerrno>

namespace ccbox::bubblewrap {

outcome desk::locate(const caller& who, const path_argument& argument, place& found) const {
  const auto step = paths.locate(who, argument, found);
  if (!step.is_done()) return step;
  if (found.directory.empty()) return outcome::failure(ENAMETOOLONG);
  if (found.directory.front() != '/') return outcome::kernel();
  return {};
}

outcome desk::deny(const caller& who, const char* operation, const place& at, const name_rule& rule) const {
  reports_.tell(who, operation, at.path(), rule);
  return outcome::failure(EACCES);
}

void desk::take_umask_of(const caller& who) {
  const auto mask = umasks_.of(who);
  if (mask == present_umask_) return;
  ::umask(mask);
  present_umask_ = mask;
}

bool exists(const place& at) {
  struct stat status;
  return ::fstatat(at.parent.get(), at.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

}  // namespace ccbox::bubblewrap
