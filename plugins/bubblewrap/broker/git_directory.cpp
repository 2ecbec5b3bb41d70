#include "broker/git_directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>

#include "broker/git_config_file.hpp"

namespace ccbox::bubblewrap {

namespace {

const name_rule config_rule{"config",
                            "a directory with objects and refs is git's, which runs what its config names",
                            name_rule::condition::git_config};
const name_rule hooks_rule{"hooks/*", "a directory with objects and refs is git's, which runs its hooks"};

bool has(int directory, const char* name) {
  struct stat status;
  return ::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

bool is_sample(std::string_view folded) {
  return folded.ends_with(".sample");
}

std::string_view last_component(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// What git would run, or what cannot be looked into.
bool has_hooks(int directory) {
  struct closer {
    void operator()(DIR* stream) const { ::closedir(stream); }
  };
  const int fd = ::openat(directory, "hooks", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno != ENOENT;
  const std::unique_ptr<DIR, closer> stream(::fdopendir(fd));
  if (!stream) {
    ::close(fd);
    return true;
  }
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != ".." && !is_sample(fold_name(name))) return true;
  }
  return false;
}

}  // namespace

outcome hold_parent(place& in) {
  in.parent = descriptor(::open(in.directory.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return in.parent || errno == ENOENT ? outcome() : outcome::failure(errno);
}

const name_rule* guarded_by_git(const desk& at, const place& in, making what) {
  if (!at.rules.guards_git(at.rules.at(in.directory))) return nullptr;
  const auto name = fold_name(in.name);
  const auto parent = in.parent.get();
  if (name == "config" && what != making::directory)
    return has(parent, "objects") && has(parent, "refs") ? &config_rule : nullptr;
  if (name == "hooks" && what == making::other)
    return has(parent, "objects") && has(parent, "refs") ? &hooks_rule : nullptr;
  if (is_sample(name) || fold_name(last_component(in.directory)) != "hooks") return nullptr;
  return has(parent, "../objects") && has(parent, "../refs") ? &hooks_rule : nullptr;
}

outcome before_git_directory(desk& at, const caller& who, const char* operation, const place& in) {
  if (!at.rules.guards_git(at.rules.at(in.directory))) return {};
  const auto name = fold_name(in.name);
  const bool completes = (name == "objects" && has(in.parent.get(), "refs")) ||
                         (name == "refs" && has(in.parent.get(), "objects"));
  // Where a glob says that `config` is guarded, so are hooks, and have been all along.
  if (!completes || exists(in) || at.rules.forbids(at.rules.at(in.directory), "config")) return {};
  if (has_hooks(in.parent.get())) return at.deny(who, operation, in, hooks_rule);
  if (!has(in.parent.get(), "config")) return {};
  place config;
  config.parent = descriptor(::openat(in.parent.get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!config.parent) return outcome::failure(errno);
  config.directory = in.directory;
  config.name = "config";
  return install_git_config(at, who, config, config, config_rule);
}

}  // namespace ccbox::bubblewrap
