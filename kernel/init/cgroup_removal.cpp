#include "cgroup_removal.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace ccbox::init {
namespace {

constexpr unsigned depth_limit = 16;

std::string read_file(const std::string& path) {
  std::string text;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char buffer[4096];
  for (ssize_t n; (n = ::read(fd, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  ::close(fd);
  return text;
}

bool write_file(const std::string& path, const char* text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const auto length = static_cast<ssize_t>(std::strlen(text));
  const bool written = ::write(fd, text, static_cast<std::size_t>(length)) == length;
  ::close(fd);
  return written;
}

std::vector<pid_t> members(const std::string& directory) {
  std::vector<pid_t> pids;
  const std::string text = read_file(directory + "/cgroup.procs");
  for (const char* at = text.c_str(); *at != '\0';) {
    char* end = nullptr;
    const long pid = std::strtol(at, &end, 10);
    if (end == at) break;
    if (pid > 0) pids.push_back(static_cast<pid_t>(pid));
    at = *end == '\n' ? end + 1 : end;
  }
  return pids;
}

void remove_tree(const std::string& directory, unsigned depth) {
  if (::rmdir(directory.c_str()) == 0 || depth == 0) return;
  DIR* listing = ::opendir(directory.c_str());
  if (listing == nullptr) return;
  while (const dirent* entry = ::readdir(listing)) {
    if (entry->d_name[0] == '.' || entry->d_type != DT_DIR) continue;
    const std::string below = directory + "/" + entry->d_name;
    kill_cgroup(below);
    remove_tree(below, depth - 1);
  }
  ::closedir(listing);
  ::rmdir(directory.c_str());
}

}  // namespace

void kill_cgroup(const std::string& directory) {
  if (write_file(directory + "/cgroup.kill", "1")) return;
  // A number is signalled only if it still is a member once we hold whatever process it means.
  const std::vector<pid_t> before = members(directory);
  std::vector<int> held;
  held.reserve(before.size());
  for (pid_t pid : before)
    held.push_back(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const std::vector<pid_t> after = members(directory);
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (held[i] < 0) continue;
    if (std::find(after.begin(), after.end(), before[i]) != after.end()) {
      ::syscall(SYS_pidfd_send_signal, held[i], SIGKILL, nullptr, 0);
    }
    ::close(held[i]);
  }
}

bool end_cgroup(const std::string& directory, unsigned limit_ms) {
  unsigned pause_ms = 1;
  for (unsigned waited_ms = 0;; waited_ms += pause_ms, pause_ms = std::min(pause_ms * 2, 50u)) {
    remove_tree(directory, depth_limit);
    struct stat status {};
    if (::stat(directory.c_str(), &status) < 0 && errno == ENOENT) return true;
    if (waited_ms >= limit_ms) return false;
    kill_cgroup(directory);
    const timespec pause{0, static_cast<long>(pause_ms) * 1000000};
    ::nanosleep(&pause, nullptr);
  }
}

}  // namespace ccbox::init
