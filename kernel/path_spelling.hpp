// The spellings of a path: as it was written, and as the kernel sees it once symbolic links are resolved.
//
// Every deny is kept in both, because a rule written against a symbolic link never fires. Nothing here
// changes the host; bytes are taken as they are (a newline, a backslash, `[` or bytes that are no UTF-8 are
// ordinary).
#pragma once

#include <string>
#include <string_view>

namespace ccbox {

enum class path_type { missing, directory, file, symlink, other };
std::string_view to_string(path_type type);

// `//`, `.` and trailing `/` removed; `..` stays, because only the file system knows where it leads.
std::string normalise_path(std::string_view path);

// Does `path` lie in `directory`, or is it the directory itself? Both normalised and absolute.
bool is_within(std::string_view path, std::string_view directory);

// What is left of `path` below `directory`, without a leading `/`; empty for the directory itself.
std::string_view path_below(std::string_view path, std::string_view directory);
std::string join_path(std::string_view directory, std::string_view below);
std::string_view parent_path(std::string_view path);  // of "/" it is "/"
std::string_view last_component(std::string_view path);

struct path_spelling {
  std::string literal;   // normalised; `..` followed the way the kernel does
  std::string resolved;  // links resolved as far as they resolve; what does not exist is kept as written
  path_type type = path_type::missing;  // of `literal`, not following the last link
  path_type resolved_type = path_type::missing;
  bool through_symlink = false;  // literal and resolved differ because of a link
  std::string blocked_by;        // the directory this user may not search, if one hides the rest; else empty
  bool magic = false;  // it leads into or through /proc, /dev or /sys, where links are not what they say
};

// `path` must be absolute. A loop of links, or more than 40 of them, counts as "does not resolve".
path_spelling spell_path(std::string_view path);

// lstat without following the last component.
path_type type_of(const std::string& path);

}  // namespace ccbox
