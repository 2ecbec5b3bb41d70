#include "population.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "../unique_fd.hpp"

namespace ccbox::init {
namespace {

// Of every process: meant for those of a namespace of our own, a catastrophe anywhere else.
void signal_everybody(int number) {
  if (getpid() == 1) kill(-1, number);
}

struct relation {
  pid_t pid, parent;
  bool descends = false;
};

pid_t parent_of(pid_t pid) {
  char path[32], text[512];
  std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
  const unique_fd file(open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t size = file ? read(file.get(), text, sizeof text - 1) : -1;
  if (size <= 0) return -1;
  text[size] = '\0';
  const char* const name_end = std::strrchr(text, ')');  // the name may hold anything
  int parent = -1;
  return name_end && std::sscanf(name_end + 1, " %*c %d", &parent) == 1 ? parent : -1;
}

std::vector<relation> all_processes() {
  std::vector<relation> found;
  DIR* const directory = opendir("/proc");
  if (!directory) return found;
  while (const dirent* entry = readdir(directory)) {
    char* end = nullptr;
    const long pid = std::strtol(entry->d_name, &end, 10);
    if (end == entry->d_name || *end != '\0') continue;
    found.push_back({static_cast<pid_t>(pid), parent_of(static_cast<pid_t>(pid))});
  }
  closedir(directory);
  return found;
}

std::vector<pid_t> descendants_of(pid_t ancestor) {
  auto processes = all_processes();
  std::vector<pid_t> found;
  std::vector<pid_t> parents{ancestor};
  while (!parents.empty()) {
    const pid_t parent = parents.back();
    parents.pop_back();
    for (auto& process : processes) {
      if (process.parent != parent || process.descends) continue;
      process.descends = true;
      found.push_back(process.pid);
      parents.push_back(process.pid);
    }
  }
  return found;
}

// Of this process, which has one thread. Nothing: this kernel does not tell.
std::optional<std::vector<pid_t>> own_children() {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/children", static_cast<int>(getpid()));
  const unique_fd file(open(path, O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::string text;
  char part[4096];
  for (;;) {
    const ssize_t size = read(file.get(), part, sizeof part);
    if (size < 0) return std::nullopt;
    if (size == 0) break;
    text.append(part, static_cast<std::size_t>(size));
  }
  std::vector<pid_t> found;
  char* end = nullptr;
  for (const char* at = text.c_str();; at = end) {
    const long pid = std::strtol(at, &end, 10);
    if (end == at) return found;
    found.push_back(static_cast<pid_t>(pid));
  }
}

}  // namespace

void population::signal_all(int number) const {
  if (confined_) {
    signal_everybody(number);
    return;
  }
  for (const pid_t pid : descendants_of(getpid()))
    kill(pid, number);
}

void population::kill_all() const {
  if (confined_) {
    signal_everybody(SIGKILL);
    return;
  }
  const auto children = own_children();
  for (const pid_t pid : children ? *children : descendants_of(getpid()))
    kill(pid, SIGKILL);
}

}  // namespace ccbox::init
