#include "table.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>

#include "script.hpp"

namespace attempt {
namespace {

int run_shell(const std::string& command) {
  const pid_t shell = ::fork();
  if (shell == 0) {
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int standard : {0, 1, 2})
      ::dup2(nothing, standard);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(shell, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) return usage_error;
  return status == 0 ? 0 : shell_failed;
}

void attempt_one(std::size_t number, const std::string& directory, const std::string& action) {
  script_result result;
  ::umask(022);
  if (::chdir(directory.c_str()) != 0)
    result = {usage_error, "chdir: errno " + std::to_string(errno)};
  else if (action.starts_with("sh "))
    result.error = run_shell(action.substr(3));
  else
    result = run_script(action);
  const auto line =
      std::to_string(number) + " " + std::to_string(result.error) + " " + result.observed + "\n";
  (void)!::write(STDOUT_FILENO, line.data(), line.size());
}

}  // namespace

bool wait_until_prepared() {
  (void)!::write(STDOUT_FILENO, "ready\n", 6);
  const int go = ::open("go", O_RDONLY | O_CLOEXEC);
  char byte;
  if (go < 0 || ::read(go, &byte, 1) != 0) {
    std::perror("attempt: go");
    return false;
  }
  ::close(go);
  return true;
}

int run_table() {
  std::string all((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
  if (!wait_until_prepared()) return usage_error;
  std::size_t number = 0;
  for (std::size_t at = 0; at < all.size(); ++number) {
    const std::string directory = all.c_str() + at;
    at += directory.size() + 1;
    const std::string action = all.c_str() + at;
    at += action.size() + 1;
    const pid_t child = ::fork();
    if (child == 0) {
      attempt_one(number, directory, action);
      ::_exit(0);
    }
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child) return usage_error;
    if (status != 0) std::printf("%zu %d ended by %d\n", number, usage_error, status), std::fflush(stdout);
  }
  return 0;
}

}  // namespace attempt
