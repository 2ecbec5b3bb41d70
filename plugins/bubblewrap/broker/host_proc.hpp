// The host's /proc, held open since before the broker went into the enclosure's mounts: there it would find
// the enclosure's own, in which the broker does not exist.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>

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

  // Which mounts there are; once, as soon as the broker is among the enclosure's. False: errno says why.
  bool learn_mounts();

  // The absolute path of what `fd`, one of the broker's own, is open on, as the enclosure's root sees it.
  // Empty: it has none that fits into 4 KiB. Not beginning with a slash: it lies on none of the enclosure's
  // mounts, so it is not the broker's to act on, however the caller came by it; or it is no file, but a pipe.
  std::string path_of(int fd) const;
  // The same for a directory, a mount that has come since among the enclosure's; nothing: it is none. The
  // calling thread's working directory is another one afterwards.
  std::optional<std::string> path_of_directory(int fd) const;
  // `fd` as a path relative to own_descriptors(), for calls that want a name to follow.
  int own_descriptors() const { return own_descriptors_.get(); }

 private:
  descriptor all_, own_descriptors_;
  std::unordered_set<std::uint64_t> mounts_;
};

}  // namespace ccbox::bubblewrap
