// The host's /proc, held open since before the broker went into the enclosure's mounts: there it would find
// the enclosure's own, in which the broker does not exist.
#pragma once

#include <sys/types.h>

#include <string>

#include "descriptor.hpp"

namespace ccbox::bubblewrap {

class host_proc {
 public:
  host_proc();  // invalid() if it cannot be opened; errno says why
  bool valid() const { return all_ && own_descriptors_; }

  // What a link of a task leads to ("cwd", "fd/7"), O_PATH. Not open: errno says why.
  descriptor follow(pid_t task, const char* link) const;
  std::string link_text(pid_t task, const char* link) const;  // empty: unknown
  std::string file(pid_t task, const char* name) const;       // the first 4 KiB; empty: unknown

  // The absolute path of what `fd`, one of the broker's own, is open on, as the enclosure's root sees it.
  // Empty: it has none that fits into 4 KiB.
  std::string path_of(int fd) const;
  // `fd` as a path relative to own_descriptors(), for calls that want a name to follow.
  int own_descriptors() const { return own_descriptors_.get(); }

 private:
  descriptor all_, own_descriptors_;
};

}  // namespace ccbox::bubblewrap
