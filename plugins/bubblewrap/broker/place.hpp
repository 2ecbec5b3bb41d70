// Where a path argument leads: a directory that is held, and one name in it.
//
// The parent is resolved by the kernel, from the caller's own directory and inside the enclosure's mounts, so
// it is what the caller would have got. Operations then act on parent and name and follow nothing: whatever
// becomes of the path meanwhile, they hit what was checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "broker/caller.hpp"
#include "descriptor.hpp"

namespace ccbox::bubblewrap {

// How an argument or an operation came out.
struct outcome {
  enum class kind { done, failed, for_the_kernel };
  kind what = kind::done;
  int error_number = 0;  // failed

  static outcome failure(int number) { return {kind::failed, number}; }
  // Nothing that the broker has to do with: the kernel answers, and the floor refuses what must be refused.
  static outcome kernel() { return {kind::for_the_kernel, 0}; }
  bool is_done() const { return what == kind::done; }
};

struct place {
  descriptor parent;      // O_PATH
  std::string directory;  // where that is, from the enclosure's root; empty: it cannot be said
  std::string name;       // no `.` or `..`
  std::string slashes;    // what follows the name in the path

  std::string argument() const { return name + slashes; }  // for calls relative to `parent`
  std::string path() const { return (directory == "/" ? "" : directory) + "/" + name; }
};

// A path argument as the caller gave it, and as far as symbolic links have led from it.
struct path_argument {
  int directory_fd = -100;  // AT_FDCWD
  std::string path;
  std::uint64_t resolve = 0;  // openat2's
};

class path_resolver {
 public:
  // `open`: paths inside below which the kernel decides alone.
  explicit path_resolver(std::vector<std::string> open) : open_(std::move(open)) {}

  // A path that ends in `.`, `..` or nothing but slashes is for the kernel: it makes no name.
  outcome locate(const caller& who, const path_argument& argument, place& found) const;
  // The directory itself that a path names, for files without a name (O_TMPFILE).
  outcome locate_directory(const caller& who, const path_argument& argument, place& found) const;
  // `found` is a symbolic link: makes of `argument` the path that it leads to. done: go on with that one.
  outcome follow(const place& found, path_argument& argument) const;

  bool is_open(std::string_view directory) const;
  // The descriptor of the caller that a name in /proc/N/fd stands for, or -1.
  int own_descriptor(const caller& who, const place& found) const;

 private:
  outcome parent(const caller& who, const path_argument& argument, std::string_view directory,
                 descriptor& found) const;
  outcome walk(const caller& who, descriptor base, std::string_view directory, descriptor& found) const;

  const std::vector<std::string> open_;
};

}  // namespace ccbox::bubblewrap
