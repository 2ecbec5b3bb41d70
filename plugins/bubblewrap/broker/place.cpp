#include "broker/place.hpp"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>

namespace ccbox::bubblewrap {

namespace {

constexpr int most_links = 40;  // as the kernel has it

int open_at2(int base, const char* path, std::uint64_t flags, std::uint64_t resolve) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = resolve;
  return static_cast<int>(::syscall(SYS_openat2, base, path, &how, sizeof how));
}

std::optional<std::string> text_of_link(int parent, const std::string& name) {
  std::array<char, PATH_MAX> text;
  const auto size = ::readlinkat(parent, name.c_str(), text.data(), text.size());
  if (size < 0) return std::nullopt;
  return std::string(text.data(), static_cast<std::size_t>(size));
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == text.npos;
}

// Is this directory of the enclosure's /proc the caller's own: /proc/N `rest`, or /proc/N/task/M `rest`?
bool is_own(const caller& who, std::string_view directory, std::string_view rest) {
  const auto ids = who.ids();
  const auto process = "/proc/" + std::to_string(ids.process);
  return ids.process > 0 && (directory == process + std::string(rest) ||
                             directory == process + "/task/" + std::to_string(ids.task) + std::string(rest));
}

bool on_proc(int fd) {
  struct statfs of;
  return ::fstatfs(fd, &of) == 0 && of.f_type == PROC_SUPER_MAGIC;
}

// What a link on /proc leads to that only the kernel can follow, or that means the broker if the broker
// follows it. Nothing: it is an ordinary one.
enum class proc_link { ordinary, text, object, foreign };
proc_link look_at_proc_link(const caller& who, int directory, std::string_view name, std::string& text,
                            descriptor& object) {
  const auto here = who.proc().path_of(directory);
  if (here == "/proc" && (name == "self" || name == "thread-self")) {
    const auto ids = who.ids();
    if (ids.process <= 0) return proc_link::foreign;
    text = std::to_string(ids.process);
    if (name == "thread-self") text += "/task/" + std::to_string(ids.task);
    return proc_link::text;
  }
  const bool descriptors = here.ends_with("/fd") && is_number(name);
  if (!descriptors && name != "cwd" && name != "root") return proc_link::ordinary;
  if (!is_own(who, here, descriptors ? "/fd" : "")) return proc_link::foreign;
  object = descriptors ? who.descriptor_number(std::atoi(std::string(name).c_str()))
                       : who.proc().follow(who.task(), std::string(name).c_str());
  return object ? proc_link::object : proc_link::foreign;
}

// A descriptor that the caller names may be of anything.
outcome say_where(const caller& who, place& found) {
  auto path = who.proc().path_of_directory(found.parent.get());
  if (!path) return outcome::failure(ENOTDIR);
  found.directory = *std::move(path);
  return {};
}

}  // namespace

bool path_resolver::is_open(std::string_view directory) const {
  return std::any_of(open_.begin(), open_.end(), [&](const std::string& path) {
    return directory.starts_with(path) && (directory.size() == path.size() || directory[path.size()] == '/');
  });
}

int path_resolver::own_descriptor(const caller& who, const place& found) const {
  return found.slashes.empty() && found.directory.ends_with("/fd") && is_number(found.name) &&
                 is_own(who, found.directory, "/fd")
             ? std::atoi(found.name.c_str())
             : -1;
}

outcome path_resolver::parent(const caller& who, const path_argument& argument, std::string_view directory,
                              descriptor& found) const {
  const bool absolute = argument.path.front() == '/';
  descriptor base;
  if (!absolute || argument.resolve != 0) {
    base = who.base(argument.directory_fd);
    if (!base) return outcome::failure(errno);
    if (directory.empty()) {
      found = std::move(base);
      return {};
    }
  }
  found = descriptor(open_at2(base ? base.get() : AT_FDCWD, std::string(directory).c_str(),
                              O_PATH | O_DIRECTORY, argument.resolve | RESOLVE_NO_MAGICLINKS));
  if (found) return {};
  const int failure = errno;
  // Through /proc/self the broker sees nothing, or itself.
  if ((failure == ELOOP || failure == ENOENT) && argument.resolve == 0)
    return walk(who, std::move(base), directory, found);
  // The same with limits of openat2's: what the caller would have found there, the kernel says.
  if (failure == ENOENT && argument.resolve != 0) return outcome::kernel();
  return failure == EAGAIN || failure == ELOOP ? outcome::kernel() : outcome::failure(failure);
}

// Step by step, as the kernel does it, but with the caller's links of /proc in place of the broker's.
outcome path_resolver::walk(const caller& who, descriptor base, std::string_view directory,
                            descriptor& found) const {
  const auto from_root = [] { return descriptor(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)); };
  std::string rest(directory);
  auto at = rest.front() == '/' ? from_root() : std::move(base);
  int links = 0;
  while (true) {
    const auto start = rest.find_first_not_of('/');
    if (start == rest.npos) break;
    const auto end = std::min(rest.find('/', start), rest.size());
    const auto name = rest.substr(start, end - start);
    rest.erase(0, end);
    descriptor next(::openat(at.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat status;
    std::string text;
    if (next && ::fstat(next.get(), &status) != 0) return outcome::failure(errno);
    const bool is_link = next && S_ISLNK(status.st_mode);
    if (is_link || (!next && errno == ENOENT)) {
      const int failure = next ? 0 : errno;
      const auto kind =
          on_proc(at.get()) ? look_at_proc_link(who, at.get(), name, text, next) : proc_link::ordinary;
      if (kind == proc_link::foreign) return outcome::kernel();
      if (kind == proc_link::object) {
        at = std::move(next);
        continue;
      }
      if (kind == proc_link::ordinary) {
        if (failure != 0) return outcome::failure(failure);
        auto read = text_of_link(at.get(), name);
        if (!read) return outcome::failure(errno);
        text = *std::move(read);
      }
      if (++links > most_links) return outcome::failure(ELOOP);
      if (text.empty()) return outcome::failure(ENOENT);
      rest = text + rest;
      if (rest.size() > PATH_MAX) return outcome::failure(ENAMETOOLONG);
      if (rest.front() == '/') at = from_root();
      continue;
    }
    if (!next) return outcome::failure(errno);
    at = std::move(next);
  }
  struct stat status;
  if (!at || ::fstat(at.get(), &status) != 0) return outcome::failure(errno);
  if (!S_ISDIR(status.st_mode)) return outcome::failure(ENOTDIR);
  found = std::move(at);
  return {};
}

outcome path_resolver::locate(const caller& who, const path_argument& argument, place& found) const {
  const std::string& path = argument.path;
  if (path.empty()) return outcome::failure(ENOENT);
  const auto last = path.find_last_not_of('/');
  if (last == path.npos) return outcome::kernel();
  const auto slash = path.rfind('/', last);
  const auto name_at = slash == path.npos ? 0 : slash + 1;
  found.name = path.substr(name_at, last + 1 - name_at);
  found.slashes = path.substr(last + 1);
  if (found.name == "." || found.name == "..") return outcome::kernel();
  const auto step = parent(who, argument, std::string_view(path).substr(0, name_at), found.parent);
  if (!step.is_done()) return step;
  return say_where(who, found);
}

outcome path_resolver::locate_directory(const caller& who, const path_argument& argument,
                                        place& found) const {
  if (argument.path.empty()) return outcome::failure(ENOENT);
  const auto step = parent(who, argument, argument.path, found.parent);
  if (!step.is_done()) return step;
  return say_where(who, found);
}

outcome path_resolver::follow(const place& found, path_argument& argument) const {
  if (argument.resolve & RESOLVE_NO_SYMLINKS) return outcome::failure(ELOOP);
  const auto text = text_of_link(found.parent.get(), found.name);
  if (!text) return outcome::failure(errno == EINVAL ? ELOOP : errno);
  if (text->empty()) return outcome::failure(ENOENT);
  if (text->front() == '/') {
    argument.path = *text;
  } else {
    const auto last = argument.path.find_last_not_of('/');
    const auto slash = argument.path.rfind('/', last);
    argument.path = (slash == argument.path.npos ? "" : argument.path.substr(0, slash + 1)) + *text;
  }
  argument.path += found.slashes;
  return argument.path.size() < PATH_MAX ? outcome() : outcome::failure(ENAMETOOLONG);
}

}  // namespace ccbox::bubblewrap
