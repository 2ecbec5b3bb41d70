#include "path_spelling.hpp"

#include <fcntl.h>
#include <limits.h>
#if defined(__linux__)
#include <linux/openat2.h>
#include <sys/syscall.h>
#endif
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>

#include <optional>
#include <vector>

#include "unique_fd.hpp"

namespace ccbox {

namespace {

constexpr int most_links = 40;  // as the kernel

bool is_kernel_tree(std::string_view path) {
  return is_within(path, "/proc") || is_within(path, "/dev") || is_within(path, "/sys");
}

template <class Take>
void for_each_component(std::string_view path, Take take) {
  while (!path.empty()) {
    const auto slash = path.find('/');
    const auto part = path.substr(0, slash);
    if (!part.empty() && part != ".") take(part);
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
}

// The components of `path`, the next one to take at the back.
void push_components(std::vector<std::string>& pending, std::string_view path) {
  std::vector<std::string> parts;
  for_each_component(path, [&](std::string_view part) { parts.emplace_back(part); });
  pending.insert(pending.end(), parts.rbegin(), parts.rend());
}

path_type type_of_mode(mode_t mode) {
  if (S_ISDIR(mode)) return path_type::directory;
  if (S_ISREG(mode)) return path_type::file;
  if (S_ISLNK(mode)) return path_type::symlink;
  return path_type::other;
}

struct walk_result {
  std::string path;
  path_type type = path_type::directory;
  std::string blocked_by;
  bool magic = false;
  bool resolved = true;  // false: a loop of links
};

// Walks `path` as the kernel would. Where a component is missing or cannot be looked at, the rest is kept as
// written.
walk_result walk(std::string_view path) {
  walk_result out;
  std::vector<std::string> pending;
  push_components(pending, path);
  out.path = "/";
  int links = 0;
  bool known_missing = false;  // then nothing below it exists either
  while (!pending.empty()) {
    const std::string part = std::move(pending.back());
    pending.pop_back();
    if (part == "..") {
      out.path = std::string(parent_path(out.path));
      known_missing = false;
      out.type = path_type::directory;
      continue;
    }
    const std::string next = join_path(out.path, part);
    if (is_kernel_tree(next)) out.magic = true;
    struct stat info;
    if (known_missing || ::lstat(next.c_str(), &info) != 0) {
      if (!known_missing && errno == EACCES && out.blocked_by.empty()) out.blocked_by = out.path;
      known_missing = true;
      out.path = next;
      out.type = path_type::missing;
      continue;
    }
    if (!S_ISLNK(info.st_mode)) {
      out.path = next;
      out.type = type_of_mode(info.st_mode);
      continue;
    }
    char target[PATH_MAX];
    const auto length = ::readlink(next.c_str(), target, sizeof target);
    if (length <= 0 || ++links > most_links) {
      out.resolved = false;
      return out;
    }
    const std::string_view text(target, static_cast<std::size_t>(length));
    push_components(pending, text);
    if (text.front() == '/') out.path = "/";
    out.type = path_type::directory;
  }
  return out;
}

// What walk() answers, from one look at the whole path, if no link is in it and every directory may be
// searched. Nearly every path of a policy is like that, and most do not exist.
std::optional<walk_result> look(const std::string& path) {
#if defined(__linux__)
  if (!path.starts_with('/') || path.find("/..") != std::string::npos) return std::nullopt;
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;
  const unique_fd found(static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
  walk_result out;
  out.path = path;
  out.magic = is_kernel_tree(path);
  if (!found) {
    out.type = path_type::missing;
    if (errno == ENOENT || errno == ENOTDIR) return out;
    return std::nullopt;
  }
  struct stat info;
  if (::fstat(found.get(), &info) != 0 || S_ISLNK(info.st_mode)) return std::nullopt;
  out.type = type_of_mode(info.st_mode);
  return out;
#else
  return std::nullopt;
#endif
}

}  // namespace

std::string_view to_string(path_type type) {
  switch (type) {
    case path_type::missing:
      return "missing";
    case path_type::directory:
      return "directory";
    case path_type::file:
      return "file";
    case path_type::symlink:
      return "symlink";
    case path_type::other:
      return "other";
  }
  return "other";
}

std::string normalise_path(std::string_view path) {
  std::string out = !path.empty() && path.front() == '/' ? "/" : "";
  for_each_component(path, [&](std::string_view part) {
    if (!out.empty() && out.back() != '/') out += '/';
    out += part;
  });
  return out;
}

bool is_within(std::string_view path, std::string_view directory) {
  if (directory == "/") return !path.empty() && path.front() == '/';
  if (!path.starts_with(directory)) return false;
  return path.size() == directory.size() || path[directory.size()] == '/';
}

std::string_view path_below(std::string_view path, std::string_view directory) {
  path.remove_prefix(directory == "/" ? 1 : directory.size());
  if (!path.empty() && path.front() == '/') path.remove_prefix(1);
  return path;
}

std::string join_path(std::string_view directory, std::string_view below) {
  std::string out(directory);
  if (below.empty()) return out;
  if (out.empty() || out.back() != '/') out += '/';
  return out.append(below);
}

std::string_view parent_path(std::string_view path) {
  const auto slash = path.rfind('/');
  if (slash == std::string_view::npos || slash == 0) return "/";
  return path.substr(0, slash);
}

std::string_view last_component(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

path_type type_of(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0 ? type_of_mode(info.st_mode) : path_type::missing;
}

path_spelling spell_path(std::string_view path) {
  path_spelling out;
  std::string literal = normalise_path(path);
  // "a/../b" is not "b" when a is a link: everything up to the last `..` is walked, what follows stays as
  // written.
  const auto last_up = (literal + "/").rfind("/../");
  if (last_up != std::string::npos) {
    const auto before = walk(std::string_view(literal).substr(0, last_up + 3));
    const std::string rest = literal.size() > last_up + 4 ? literal.substr(last_up + 4) : "";
    literal = join_path(before.path, rest);
    out.magic = before.magic;
  }
  auto quick = look(literal);
  auto seen = quick ? std::move(*quick) : walk(literal);
  out.literal = std::move(literal);
  out.magic = out.magic || seen.magic;
  out.blocked_by = std::move(seen.blocked_by);
  if (!seen.resolved) {
    out.resolved = out.literal;
    out.type = out.resolved_type = type_of(out.literal);
    out.through_symlink = true;
    return out;
  }
  out.through_symlink = seen.path != out.literal;
  out.type = out.through_symlink ? type_of(out.literal) : seen.type;
  out.resolved = std::move(seen.path);
  out.resolved_type = seen.type;
  return out;
}

}  // namespace ccbox
