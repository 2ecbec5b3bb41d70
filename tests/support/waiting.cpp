#include "support/waiting.hpp"

#include <poll.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace ccbox::test {

bool wait_until_removed(const std::string& path, int limit_ms) {
  const unique_fd watch(::inotify_init1(IN_CLOEXEC));
  const std::string parent = std::filesystem::path(path).parent_path();
  if (::inotify_add_watch(watch.get(), parent.c_str(), IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF) < 0) {
    return !std::filesystem::exists(parent);
  }
  while (std::filesystem::exists(path)) {
    pollfd p{watch.get(), POLLIN, 0};
    if (::poll(&p, 1, limit_ms) != 1) return false;
    char events[4096];
    if (::read(watch.get(), events, sizeof events) <= 0) return false;
  }
  return true;
}

unique_fd open_process(pid_t pid) {
  return unique_fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool wait_until_ended(int pidfd, int limit_ms) {
  pollfd p{pidfd, POLLIN, 0};
  return ::poll(&p, 1, limit_ms) == 1;
}

// By each process's word on its parent: /proc/PID/task/TID/children may miss one while another ends.
std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> out;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string text;
    std::getline(file, text, '\0');  // a process that ends meanwhile reads as nothing
    char state = 0;
    int parent = 0;
    const std::size_t after_name = text.rfind(')');
    if (after_name == text.npos) continue;
    if (std::sscanf(text.c_str() + after_name, ") %c %d", &state, &parent) == 2 && parent == pid) {
      out.push_back(std::stoi(name));
    }
  }
  return out;
}

std::vector<unique_fd> open_process_tree(pid_t pid) {
  std::vector<unique_fd> out;
  if (unique_fd fd = open_process(pid)) out.push_back(std::move(fd));
  for (pid_t child : children_of(pid)) {
    for (unique_fd& fd : open_process_tree(child))
      out.push_back(std::move(fd));
  }
  return out;
}

}  // namespace ccbox::test
