#include "janitor.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string>
#include <vector>

#include "cgroup_removal.hpp"

namespace ccbox::init {

int run_janitor() {
  constexpr unsigned limit_ms = 10000;
  // What ends the owner's terminal or session must not end us before we have cleaned up.
  for (int number : {SIGHUP, SIGINT, SIGTERM, SIGQUIT})
    ::signal(number, SIG_IGN);
  [[maybe_unused]] const int moved = ::chdir("/");

  std::vector<std::string> remembered;
  char message[1 + PATH_MAX];
  for (;;) {
    const ssize_t n = ::recv(STDIN_FILENO, message, sizeof message, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    const std::string directory(message + 1, static_cast<std::size_t>(n - 1));
    if (message[0] == '+') {
      remembered.push_back(directory);
      continue;
    }
    remembered.erase(std::remove(remembered.begin(), remembered.end(), directory), remembered.end());
    if (message[0] == 'x') end_cgroup(directory, limit_ms);
  }
  for (const std::string& directory : remembered)
    kill_cgroup(directory);
  for (const std::string& directory : remembered)
    end_cgroup(directory, limit_ms);
  return 0;
}

}  // namespace ccbox::init
