// Entries of a mount view by the place where they are found inside. One entry a place: spellings are normal
// paths.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ccbox::bubblewrap {

enum class entry_kind {
  bind,       // a host path
  symlink,    // a link of the root, e.g. /bin
  tmpfs,      // private memory
  directory,  // a directory inside private memory
  proc,
  dev,
  mask,  // nothing readable, nothing writable
};

struct entry {
  entry_kind kind = entry_kind::bind;
  std::string guest;
  std::string host;        // bind, and a mask: the path it hides
  bool read_only = false;  // bind
  bool is_directory = true;
  bool optional = false;  // left out where its mount point does not exist
  bool system = false;    // bind of the root; mask of what the enclosure made itself
  unsigned mode = 0755;   // tmpfs, directory
  std::string text;       // symlink: what it says
  std::size_t rule = 0;   // bind, symlink: whose it is
  std::size_t sequence = 0;
};

class mount_table {
 public:
  // Replaces what is at the same place.
  entry& put(entry e);
  void remove(const std::string& guest) { entries_.erase(guest); }

  entry* at(std::string_view guest);
  entry* over(std::string_view guest);   // the deepest at the place or above it, or null
  entry* above(std::string_view guest);  // the deepest strictly above, or null
  bool any_below(std::string_view guest) const;

  std::vector<entry*> by_depth();  // shallow first, then in the order in which they were put
  std::size_t size() const { return entries_.size(); }

 private:
  std::map<std::string, entry, std::less<>> entries_;
  std::size_t sequence_ = 0;
};

}  // namespace ccbox::bubblewrap
