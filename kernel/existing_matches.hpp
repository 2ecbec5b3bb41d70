// What of a writable tree the name rules cover already: found once, before anything runs in the enclosure.
//
// The walk changes nothing, follows no symbolic link (every directory is opened from its parent, O_NOFOLLOW)
// and does not enter /proc, /sys and their kin. A directory of which everything matches is one match and is
// not entered. A directory that cannot be looked into, or lies more than 100 deep, counts as a match itself:
// what cannot be seen is not assumed to be absent.
#pragma once

#include <cstddef>
#include <future>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "glob.hpp"
#include "path_spelling.hpp"
#include "result.hpp"

namespace ccbox {

struct existing_match {
  std::string path;  // absolute
  path_type type = path_type::file;
  std::optional<std::size_t> deny;  // which glob; none: a directory that cannot be looked into
  bool operator==(const existing_match&) const = default;
};

// A symbolic link where globs have got somewhere (`.git`, `.claude`) and the directory it leads to: for
// whoever follows it, they go on there.
struct followed_link {
  std::string path;
  std::string target;
  glob_set::state state;  // of `deny` in the target, of those globs alone
  bool operator<(const followed_link& other) const {
    return std::tie(path, target, state) < std::tie(other.path, other.target, other.state);
  }
};

struct existing_matches {
  std::vector<existing_match> matches;  // sorted by path
  std::vector<followed_link> links;
  // Git directories under another name than `.git`: what a `.git` *file* points to (with the common directory
  // it names), and bare repositories.
  std::vector<std::string> git_directories;
  std::vector<std::string> git_files;  // those `.git` files: who rewrites one chooses whose hooks git runs
};

struct match_request {
  std::string root;              // a directory, resolved
  glob_set::state state;         // of `deny` at the root
  glob_set::state exempt_state;  // of `exempt` there
  std::set<std::string> skip;    // absolute paths that are denied as a whole already
  std::size_t limit = 2000;
};

// `exempt` wins over `deny` for the very entry it matches, not for a directory that everything below is
// denied of. too_large when there are more than `limit`; the message names the root and the number.
result<existing_matches> find_existing_matches(const match_request& request, const glob_set& deny,
                                               const glob_set& exempt);

// Existing paths that an absolute glob (`~/.cargo/credentials*`, expanded) means, literally spelled. A
// directory that cannot be looked into is one of them.
result<std::vector<std::string>> expand_glob(const std::string& pattern, std::size_t limit);

// Entries below `directory` that other people may not read, a directory as one; for a root caller, who could.
result<std::vector<std::string>> find_private_entries(const std::string& directory, std::size_t limit);
// The same of /etc on a thread of its own, which is as long as reading configuration and plugins takes; for
// host_facts. Without a limit. Invalid where no thread could be made.
std::shared_future<result<std::vector<std::string>>> begin_private_in_etc();

}  // namespace ccbox
