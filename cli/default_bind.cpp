#include "default_bind.hpp"

#include <sys/stat.h>

#include <map>
#include <string>
#include <vector>

#include "account.hpp"
#include "context.hpp"
#include "path_spelling.hpp"
#include "result.hpp"

namespace ccbox {

namespace {

// Homes and the directories above them, each with what it is; the caller's own first.
std::map<std::string, std::string> places_of_homes(const host_facts& host) {
  std::map<std::string, std::string> out;
  const auto add = [&](std::string path, const std::string& is, const std::string& contains) {
    if (path.size() < 2 || path.front() != '/') return;
    out.emplace(path, is);
    for (auto slash = path.rfind('/'); slash > 0; slash = path.rfind('/')) {
      path.resize(slash);
      out.emplace(path, contains);
    }
  };
  add(host.home, " is your home directory: all your files would be writable",
      " contains your home directory: all your files would be writable");
  std::vector<std::string> others = host.other_homes;
  for (const account& other : local_accounts())
    others.push_back(normalise_path(other.home));
  for (const std::string& other : others)
    add(other, " is the home directory of an account: all its files would be writable",
        " contains the home directory of an account: all its files would be writable");
  return out;
}

}  // namespace

std::optional<std::string> why_not_bound_by_default(const host_facts& host) {
  const std::string& directory = host.current_directory;
  if (directory.empty()) return std::string("the current directory has no path: ") + no_current_path;
  if (directory == "/") return "the current directory is /: the whole host would be writable";
  const std::string named = "the current directory " + quoted(directory);
  struct stat here {
  }, there{};
  if (::stat(directory.c_str(), &here) != 0) return named + " cannot be looked at";
  for (const auto& [path, what] : places_of_homes(host)) {
    // By identity: a home may be reached through a link.
    if (::stat(path.c_str(), &there) == 0 && here.st_dev == there.st_dev && here.st_ino == there.st_ino)
      return named + what;
  }
  if (directory.rfind('/') == 0)
    return named + " is one of the host's own: everything that is kept there would be writable";
  if ((here.st_mode & S_ISVTX) && (here.st_mode & S_IWOTH))
    return named + " is shared by all users of this host: what others keep there would be writable";
  return std::nullopt;
}

}  // namespace ccbox
