#include "cgroup.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <sstream>

#include "cgroup_janitor.hpp"
#include "init/cgroup_removal.hpp"
#include "mountinfo.hpp"
#include "os.hpp"
#include "unique_fd.hpp"

namespace ccbox {
namespace {

result<std::string> read_file(const std::string& path) {
  unique_fd fd(static_cast<int>(os::call(SYS_openat, AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC, 0)));
  if (!fd) return system_error("open", path, errno);
  std::string text;
  char buffer[4096];
  for (;;) {
    const long n = os::call(SYS_read, fd.get(), buffer, sizeof buffer);
    if (n < 0) return system_error("read", path, errno);
    if (n == 0) return text;
    text.append(buffer, static_cast<std::size_t>(n));
  }
}

bool writable(const std::string& path) {
  return os::call(SYS_faccessat, AT_FDCWD, path.c_str(), W_OK) == 0;
}

bool lists_word(std::string_view list, std::string_view word, char separator) {
  while (!list.empty()) {
    const std::size_t end = list.find(separator);
    if (list.substr(0, end) == word) return true;
    if (end == list.npos) break;
    list.remove_prefix(end + 1);
  }
  return false;
}

std::string first_line(std::string text) {
  return text.substr(0, text.find('\n'));
}

struct own_group {
  int version = 0;
  std::string directory;
  std::string mount_point;
};

// The path of our group in the hierarchy as /proc/self/cgroup has it: "4:memory:/a/b", "0::/a/b".
std::string own_path(std::string_view proc_cgroup, int version, std::string_view controller) {
  std::istringstream lines{std::string(proc_cgroup)};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    if (version == 2 ? line.starts_with("0::") : lists_word(controllers, controller, ',')) {
      return line.substr(second + 1);
    }
  }
  return {};
}

// Our group of a v1 hierarchy with `controller`, or of the v2 one, as a directory; nothing if it is not
// mounted where we can see it.
std::optional<own_group> find_own_group(std::string_view proc_cgroup, std::string_view mountinfo, int version,
                                        std::string_view controller) {
  const std::string path = own_path(proc_cgroup, version, controller);
  if (path.empty() || path.starts_with("/..")) return {};
  for (const auto& [root, mount_point, type, options] : parse_mountinfo(mountinfo)) {
    if (type != (version == 2 ? "cgroup2" : "cgroup")) continue;
    if (version == 1 && !lists_word(options, controller, ',')) continue;
    std::string below = path;
    if (root != "/") {
      if (!path.starts_with(root) || (path.size() > root.size() && path[root.size()] != '/')) continue;
      below = path.substr(root.size());
    }
    if (below == "/") below.clear();
    return own_group{version, mount_point + below, mount_point};
  }
  return {};
}

bool limits_our_group(const std::string& directory, std::string_view controller) {
  const auto value = read_file(directory + "/" + std::string(controller) + ".max");
  return value && !value->starts_with("max");
}

result<cgroup_place> unavailable(std::string what) {
  return error{error_code::unavailable, std::move(what),
               "run as root, or in a cgroup that is delegated to this user"};
}

// v2: groups with processes have no controllers below them, the hierarchy's real root excepted.
result<cgroup_place> find_v2_place(const own_group& own, std::string_view controller) {
  const bool is_root = !read_file(own.directory + "/cgroup.type");
  if (!is_root && own.directory == own.mount_point)
    return unavailable("cgroup v2: our group is the top one here and has processes");
  const std::string place = is_root ? own.directory : own.directory.substr(0, own.directory.rfind('/'));
  const auto handed_down = read_file(place + "/cgroup.subtree_control");
  if (!handed_down || !lists_word(first_line(*handed_down), controller, ' ') || !writable(place) ||
      !writable(place + "/cgroup.procs")) {
    return unavailable("cgroup v2: " + quoted(place) + " gives this user no " + std::string(controller) +
                       " controller");
  }
  if (!is_root && limits_our_group(own.directory, controller)) {
    return unavailable("cgroup v2: our own group " + quoted(own.directory) + " limits " +
                       std::string(controller) + ", and a group beside it would escape that");
  }
  return cgroup_place{2, place};
}

std::string pid_namespace() {
  struct stat status {};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? std::to_string(status.st_ino) : "0";
}

// Field 22 of /proc/PID/stat, counted behind the name, which may hold anything; empty: no such process.
std::string start_time(const std::string& pid) {
  const auto text = read_file("/proc/" + pid + "/stat");
  if (!text || text->rfind(')') == text->npos) return {};
  std::istringstream fields(text->substr(text->rfind(')') + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i)
    fields >> field;
  return field;
}

// Groups that a killed owner left, because its janitor was killed too. Owners of another pid namespace are
// not ours to judge.
void sweep(const std::string& parent) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(parent.c_str()), ::closedir);
  if (!listing) return;
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string name = entry->d_name;
    if (!name.starts_with("ccbox-")) continue;
    std::istringstream parts(name.substr(6));
    std::string pid, started, names;
    if (!std::getline(parts, pid, '-') || !std::getline(parts, started, '-') ||
        !std::getline(parts, names, '-')) {
      continue;
    }
    if (names != pid_namespace() || pid.find_first_not_of("0123456789") != pid.npos) continue;
    if (start_time(pid) == started) continue;
    const std::string directory = parent + "/" + name;
    if (!janitor_end(directory)) init::end_cgroup(directory, 100);
  }
}

}  // namespace

result<cgroup_place> find_cgroup_place(std::string_view controller) {
  const auto groups = read_file("/proc/self/cgroup");
  const auto mounts = read_file("/proc/self/mountinfo");
  if (!groups || !mounts) return unavailable("cgroups: " + (groups ? mounts : groups).error().what);
  if (const auto own = find_own_group(*groups, *mounts, 1, controller)) {
    if (writable(own->directory)) return cgroup_place{1, own->directory};
    return unavailable("cgroup v1: this user may not make groups in " + quoted(own->directory));
  }
  if (const auto own = find_own_group(*groups, *mounts, 2, controller))
    return find_v2_place(*own, controller);
  return unavailable("no cgroup hierarchy with the " + std::string(controller) + " controller is mounted");
}

result<cgroup> cgroup::create(const cgroup_place& place, const std::string& session_id,
                              const std::string& init_path) {
  const std::string pid = std::to_string(::getpid());
  const std::string directory =
      place.directory + "/ccbox-" + pid + "-" + start_time(pid) + "-" + pid_namespace() + "-" + session_id;
  if (auto ok = janitor_remember(directory, init_path); !ok) return ok.error();
  sweep(place.directory);
  if (os::call(SYS_mkdirat, AT_FDCWD, directory.c_str(), 0755) < 0) {
    const error e = system_error("mkdir", directory, errno);
    janitor_forget(directory);
    return e;
  }
  return cgroup(place.version, directory);
}

cgroup::cgroup(cgroup&& other) noexcept
    : version_(other.version_), directory_(std::exchange(other.directory_, {})) {}

cgroup& cgroup::operator=(cgroup&& other) noexcept {
  cgroup taken(std::move(other));
  std::swap(version_, taken.version_);
  std::swap(directory_, taken.directory_);
  return *this;
}

cgroup::~cgroup() {
  if (directory_.empty()) return;
  if (os::call(SYS_unlinkat, AT_FDCWD, directory_.c_str(), AT_REMOVEDIR) == 0) {
    janitor_forget(directory_);
  } else if (!janitor_end(directory_)) {
    init::end_cgroup(directory_, 1000);
  }
}

bool cgroup::has(const std::string& file) const {
  return os::call(SYS_faccessat, AT_FDCWD, (directory_ + "/" + file).c_str(), W_OK) == 0;
}

result<void> cgroup::set(const std::string& file, const std::string& value) const {
  const std::string path = directory_ + "/" + file;
  unique_fd fd(static_cast<int>(os::call(SYS_openat, AT_FDCWD, path.c_str(), O_WRONLY | O_CLOEXEC, 0)));
  if (!fd) return system_error("open", path, errno);
  if (os::call(SYS_write, fd.get(), value.data(), value.size()) != static_cast<long>(value.size())) {
    return system_error("write " + value + " to", path, errno);
  }
  return {};
}

std::string cgroup::get(const std::string& file) const {
  const auto text = read_file(directory_ + "/" + file);
  return text ? *text : "";
}

std::optional<std::uint64_t> cgroup::counter(const std::string& file, std::string_view key) const {
  std::istringstream lines(get(file));
  std::string name;
  std::uint64_t value = 0;
  while (lines >> name >> value) {
    if (name == key) return value;
  }
  return {};
}

}  // namespace ccbox
