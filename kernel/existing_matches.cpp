#include "existing_matches.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <system_error>

#include "unique_fd.hpp"

namespace ccbox {

namespace {

constexpr std::size_t deepest = 100;

struct entry {
  std::string name;
  path_type type;
};

// As getdents64(2) fills them in.
struct kernel_entry {
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t length;
  std::uint8_t type;
  char name[1];
};

path_type type_of_entry(int directory, const kernel_entry& e) {
  switch (e.type) {
    case DT_DIR:
      return path_type::directory;
    case DT_REG:
      return path_type::file;
    case DT_LNK:
      return path_type::symlink;
    case DT_UNKNOWN:
      break;
    default:
      return path_type::other;
  }
  struct stat info;
  if (::fstatat(directory, e.name, &info, AT_SYMLINK_NOFOLLOW) != 0) return path_type::missing;
  return S_ISDIR(info.st_mode)   ? path_type::directory
         : S_ISREG(info.st_mode) ? path_type::file
         : S_ISLNK(info.st_mode) ? path_type::symlink
                                 : path_type::other;
}

// The entries of an open directory. Without readdir: that wants a descriptor of its own and 32 KiB for each
// directory of a walk.
result<std::vector<entry>> read_entries(int directory, const std::string& path) {
  std::vector<entry> out;
  alignas(kernel_entry) char buffer[16 << 10];
  for (;;) {
    const auto length = ::syscall(SYS_getdents64, directory, buffer, sizeof buffer);
    if (length < 0) return system_error("getdents64", path, errno);
    if (length == 0) break;
    for (long at = 0; at < length;) {
      const auto& e = *reinterpret_cast<const kernel_entry*>(buffer + at);
      const std::string_view name = e.name;
      if (name != "." && name != "..") out.push_back({std::string(name), type_of_entry(directory, e)});
      at += e.length;
    }
  }
  return out;
}

unique_fd open_directory(int parent, const char* name) {
  return unique_fd(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
}

// File systems that are views of the kernel, not files of the user.
bool is_kernel_filesystem(int directory) {
  struct statfs info;
  if (::fstatfs(directory, &info) != 0) return false;
  switch (static_cast<unsigned long>(info.f_type)) {
    case PROC_SUPER_MAGIC:
    case SYSFS_MAGIC:
    case CGROUP_SUPER_MAGIC:
    case CGROUP2_SUPER_MAGIC:
    case DEVPTS_SUPER_MAGIC:
    case DEBUGFS_MAGIC:
    case TRACEFS_MAGIC:
    case SECURITYFS_MAGIC:
    case BPF_FS_MAGIC:
      return true;
    default:
      return false;
  }
}

// The first line of a small regular file; empty if it is something else.
std::string first_line(int directory, const std::string& name) {
  const unique_fd file(::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat info;
  if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  char bytes[4096];
  const auto length = ::read(file.get(), bytes, sizeof bytes);
  if (length <= 0) return {};
  const std::string_view text(bytes, static_cast<std::size_t>(length));
  return std::string(text.substr(0, text.find_first_of("\r\n")));
}

class tree_walk {
 public:
  tree_walk(const match_request& request, const glob_set& deny, const glob_set& exempt)
      : request_(request), deny_(deny), exempt_(exempt) {}

  result<existing_matches> run() {
    const unique_fd root = open_directory(AT_FDCWD, request_.root.c_str());
    if (!root) {
      if (errno != EACCES) return system_error("open", request_.root, errno);
      if (auto added = add(request_.root, path_type::directory, std::nullopt); !added) return added.error();
      return std::move(found_);
    }
    if (auto walked = walk(root.get(), request_.root, request_.state, request_.exempt_state, 0); !walked)
      return walked.error();
    std::sort(found_.matches.begin(), found_.matches.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    std::sort(found_.git_directories.begin(), found_.git_directories.end());
    found_.links.assign(followed_.begin(), followed_.end());
    std::sort(found_.git_files.begin(), found_.git_files.end());
    const auto last = std::unique(found_.git_directories.begin(), found_.git_directories.end());
    found_.git_directories.erase(last, found_.git_directories.end());
    return std::move(found_);
  }

 private:
  result<void> add(const std::string& path, path_type type, std::optional<std::size_t> glob) {
    if (found_.matches.size() == request_.limit)
      return error{
          error_code::too_large,
          "more than " + std::to_string(request_.limit) + " existing files below " + quoted(request_.root) +
              " have names that may not be written (the last one is " + quoted(path) + ")",
          "bind a smaller directory, bind it read-only, or raise max_existing_matches in policy.yaml"};
    found_.matches.push_back({path, type, glob});
    return {};
  }

  result<void> walk(int directory, const std::string& path, const glob_set::state& state,
                    const glob_set::state& exempt_state, std::size_t depth) {
    std::vector<std::uint32_t> accepted;
    deny_.all_below(state, accepted);
    if (!accepted.empty()) return add(path, path_type::directory, accepted.front());
    struct stat info;
    if (::fstat(directory, &info) == 0 && info.st_dev != device_) {
      if (is_kernel_filesystem(directory)) return {};
      device_ = info.st_dev;
    }
    auto entries = read_entries(directory, path);
    if (!entries) {
      if (entries.error().code == error_code::permission_denied)
        return add(path, path_type::directory, std::nullopt);
      return entries.error();
    }
    note_git_directories(directory, path, *entries);
    std::vector<std::uint32_t> exempted;
    for (const auto& e : *entries) {
      if (e.type == path_type::missing) continue;  // it went away meanwhile
      accepted.clear();
      auto next = deny_.step(state, e.name, &accepted);
      if (accepted.empty() && e.type != path_type::directory && next.empty()) continue;  // nearly every file
      const std::string child = join_path(path, e.name);
      if (request_.skip.contains(child)) continue;
      exempted.clear();
      auto next_exempt = exempt_.step(exempt_state, e.name, &exempted);
      if (!accepted.empty() && exempted.empty()) {
        if (auto added = add(child, e.type, accepted.front()); !added) return added;
        continue;
      }
      if (e.type == path_type::symlink) {
        if (auto followed = follow(child, std::move(next), depth); !followed) return followed;
        continue;
      }
      if (e.type != path_type::directory) continue;
      if (depth == deepest) {
        if (auto added = add(child, path_type::directory, std::nullopt); !added) return added;
        continue;
      }
      const unique_fd below = open_directory(directory, e.name.c_str());
      if (!below) {
        if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) continue;  // it changed meanwhile
        if (errno != EACCES && errno != EPERM) return system_error("open", child, errno);
        if (auto added = add(child, path_type::directory, std::nullopt); !added) return added;
        continue;
      }
      const auto outer_device = device_;
      if (auto walked = walk(below.get(), child, next, next_exempt, depth + 1); !walked) return walked;
      device_ = outer_device;
    }
    return {};
  }

  // What a link leads to counts as what it stands for: `.git/hooks` may be one, and so may `.claude`.
  result<void> follow(const std::string& link, glob_set::state state, std::size_t depth) {
    std::vector<std::uint32_t> accepted;
    deny_.all_below(state, accepted);
    if (!accepted.empty()) return add(link, path_type::symlink, accepted.front());
    const auto spelling = spell_path(link);
    if (spelling.resolved_type != path_type::directory || spelling.magic) return {};
    followed_link followed{link, spelling.resolved, std::move(state)};
    if (!followed_.insert(followed).second) return {};
    if (followed_.size() > request_.limit)
      return error{error_code::too_large,
                   "more than " + std::to_string(request_.limit) + " links below " + quoted(request_.root) +
                       " stand for directories with protected names",
                   "bind a smaller directory, or bind it read-only"};
    const unique_fd target = open_directory(AT_FDCWD, spelling.resolved.c_str());
    if (!target) {
      if (errno != EACCES) return {};  // it changed meanwhile
      return add(spelling.resolved, path_type::directory, std::nullopt);
    }
    return walk_linked(target.get(), spelling.resolved, followed.state, depth + 1);
  }

  // Like walk, but only where the globs that led here go on.
  result<void> walk_linked(int directory, const std::string& path, const glob_set::state& state,
                           std::size_t depth) {
    if (is_kernel_filesystem(directory)) return {};
    if (depth >= deepest) return add(path, path_type::directory, std::nullopt);
    auto entries = read_entries(directory, path);
    if (!entries) return entries.error();
    for (const auto& e : *entries) {
      std::vector<std::uint32_t> accepted, all_below;
      auto next = deny_.step_started(state, e.name, &accepted);
      if (next.empty()) continue;
      const std::string child = join_path(path, e.name);
      if (e.type == path_type::directory) deny_.all_below(next, all_below);
      accepted.insert(accepted.end(), all_below.begin(), all_below.end());
      if (!accepted.empty()) {
        if (auto added = add(child, e.type, accepted.front()); !added) return added;
      } else if (e.type == path_type::symlink) {
        if (auto followed = follow(child, std::move(next), depth); !followed) return followed;
      } else if (e.type == path_type::directory) {
        const unique_fd below = open_directory(directory, e.name.c_str());
        if (!below) {
          if (errno != EACCES) continue;  // it changed meanwhile
          if (auto added = add(child, path_type::directory, std::nullopt); !added) return added;
          continue;
        }
        if (auto walked = walk_linked(below.get(), child, next, depth + 1); !walked) return walked;
      }
    }
    return {};
  }

  static bool may_be_directory(const entry& e) {
    return e.type == path_type::directory || e.type == path_type::symlink;
  }

  void note_git_directories(int directory, const std::string& path, const std::vector<entry>& entries) {
    bool head = false, objects = false, refs = false;
    for (const auto& e : entries) {
      if (e.name == "HEAD")
        head = true;
      else if (e.name == "objects" && may_be_directory(e))
        objects = true;
      else if (e.name == "refs" && may_be_directory(e))
        refs = true;
      else if (e.name == ".git" && e.type == path_type::file)
        note_git_file(directory, path);
    }
    if (head && objects && refs && last_component(path) != ".git") found_.git_directories.push_back(path);
  }

  void note_git_file(int directory, const std::string& path) {
    constexpr std::string_view key = "gitdir:";
    const std::string line = first_line(directory, ".git");
    if (!line.starts_with(key)) return;
    const auto begin = line.find_first_not_of(' ', key.size());
    if (begin == std::string::npos) return;
    found_.git_files.push_back(join_path(path, ".git"));
    const std::string named = line.substr(begin);
    const auto git = spell_path(named.front() == '/' ? named : join_path(path, named));
    if (git.resolved_type != path_type::directory) return;
    found_.git_directories.push_back(git.resolved);
    const unique_fd opened = open_directory(AT_FDCWD, git.resolved.c_str());
    if (!opened) return;
    const std::string common = first_line(opened.get(), "commondir");
    if (common.empty()) return;
    const auto shared = spell_path(common.front() == '/' ? common : join_path(git.resolved, common));
    if (shared.resolved_type == path_type::directory) found_.git_directories.push_back(shared.resolved);
  }

  const match_request& request_;
  const glob_set& deny_;
  const glob_set& exempt_;
  existing_matches found_;
  std::set<followed_link> followed_;
  dev_t device_ = 0;
};

result<void> expand_below(const std::string& directory, const glob& pattern, glob::positions at,
                          std::size_t depth, std::size_t limit, std::vector<std::string>& out) {
  const unique_fd opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened) {
    if (errno == EACCES) out.push_back(directory);
    return {};
  }
  auto entries = read_entries(opened.get(), directory);
  if (!entries) return entries.error();
  for (const auto& e : *entries) {
    const auto next = pattern.step(at, fold_name(e.name));
    if (next == 0) continue;
    const std::string child = join_path(directory, e.name);
    if (pattern.accepts(next)) {
      if (out.size() == limit)
        return error{error_code::too_large,
                     "more than " + std::to_string(limit) + " existing paths match " +
                         quoted(pattern.text()) + " below " + quoted(directory),
                     "name their directory instead, or raise max_existing_matches in policy.yaml"};
      out.push_back(child);
    } else if (e.type == path_type::directory && depth < deepest) {
      if (auto below = expand_below(child, pattern, next, depth + 1, limit, out); !below) return below;
    }
  }
  return {};
}

result<void> private_below(int directory, const std::string& path, std::size_t depth, std::size_t limit,
                           std::vector<std::string>& out) {
  auto entries = read_entries(directory, path);
  if (!entries) return entries.error();
  for (const auto& e : *entries) {
    if (e.type == path_type::symlink || e.type == path_type::missing) continue;
    struct stat info;
    if (::fstatat(directory, e.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const std::string child = join_path(path, e.name);
    const bool is_directory = S_ISDIR(info.st_mode);
    const mode_t open_to_all = is_directory ? S_IROTH | S_IXOTH : S_IROTH;
    if ((info.st_mode & open_to_all) != open_to_all) {
      if (out.size() == limit)
        return error{error_code::too_large,
                     "more than " + std::to_string(limit) + " entries below " + quoted(path) +
                         " are not for everybody to read",
                     "raise max_existing_matches in policy.yaml"};
      out.push_back(child);
      continue;
    }
    if (!is_directory || depth == deepest) continue;
    const unique_fd below = open_directory(directory, e.name.c_str());
    if (!below) continue;
    if (auto walked = private_below(below.get(), child, depth + 1, limit, out); !walked) return walked;
  }
  return {};
}

}  // namespace

result<existing_matches> find_existing_matches(const match_request& request, const glob_set& deny,
                                               const glob_set& exempt) {
  return tree_walk(request, deny, exempt).run();
}

result<std::vector<std::string>> expand_glob(const std::string& pattern, std::size_t limit) {
  // The fixed part may run through links (a home that is one); what the wildcards stand for may not.
  std::string_view fixed = pattern;
  while (has_wildcard(fixed))
    fixed = parent_path(fixed);
  auto below = compile_glob("./" + std::string(path_below(pattern, fixed)));
  if (!below) return below.error();
  std::vector<std::string> out;
  if (auto done = expand_below(std::string(fixed), *below, below->start(), 0, limit, out); !done)
    return done.error();
  std::sort(out.begin(), out.end());
  return out;
}

result<std::vector<std::string>> find_private_entries(const std::string& directory, std::size_t limit) {
  std::vector<std::string> out;
  const unique_fd opened = open_directory(AT_FDCWD, directory.c_str());
  if (!opened) return out;
  if (auto walked = private_below(opened.get(), directory, 0, limit, out); !walked) return walked.error();
  std::sort(out.begin(), out.end());
  return out;
}

std::shared_future<result<std::vector<std::string>>> begin_private_in_etc() {
  try {
    return std::async(std::launch::async, find_private_entries, "/etc",
                      std::numeric_limits<std::size_t>::max());
  } catch (const std::system_error&) {
    return {};
  }
}

}  // namespace ccbox
