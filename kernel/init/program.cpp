#include "program.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "../unique_fd.hpp"

namespace ccbox::init {
namespace {

constexpr const char* standard_path = "/usr/local/bin:/usr/bin:/bin";

std::string_view path_of(char* const env[]) {
  for (; *env; ++env)
    if (std::strncmp(*env, "PATH=", 5) == 0) return *env + 5;
  return standard_path;
}

// What shells ask before they take a file for a script: a NUL in its first line means that it is none.
bool looks_like_text(const char* path) {
  const unique_fd file(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char head[128];
  const ssize_t size = file ? read(file.get(), head, sizeof head) : -1;
  if (size < 0) return false;
  const std::string_view text(head, static_cast<std::size_t>(size));
  return text.substr(0, text.find('\n')).find('\0') == std::string_view::npos;
}

// A directory that may not be searched, or has a directory of that name, has no such program.
bool is_file(const char* path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

int execute_file(const char* path, char* const argv[], char* const env[]) {
  execve(path, argv, env);
  if (errno != ENOEXEC || !looks_like_text(path)) return errno;
  char shell[] = "/bin/sh";
  std::string script(path);
  std::vector<char*> words{shell, script.data()};
  for (char* const* word = argv + 1; *word; ++word)
    words.push_back(*word);
  words.push_back(nullptr);
  execve(shell, words.data(), env);
  return errno;
}

bool try_next_directory(int error_number) {
  switch (error_number) {
    case EACCES:
    case ENOENT:
    case ENOTDIR:
    case ESTALE:
    case ENODEV:
    case ETIMEDOUT:
    case ELOOP:
    case ENAMETOOLONG:
      return true;
    default:
      return false;
  }
}

}  // namespace

int execute_program(char* const argv[], char* const env[]) {
  const std::string_view name(argv[0]);
  if (name.empty()) return ENOENT;
  if (name.find('/') != std::string_view::npos) return execute_file(argv[0], argv, env);

  bool forbidden = false;
  std::string_view rest = path_of(env);
  for (;;) {
    const auto end = rest.find(':');
    std::string candidate(rest.substr(0, end));
    if (!candidate.empty()) candidate += '/';  // an empty element is the current directory
    candidate += name;
    const int error_number = execute_file(candidate.c_str(), argv, env);
    if (!try_next_directory(error_number)) return error_number;
    forbidden = forbidden || (error_number == EACCES && is_file(candidate.c_str()));
    if (end == std::string_view::npos) return forbidden ? EACCES : ENOENT;
    rest.remove_prefix(end + 1);
  }
}

}  // namespace ccbox::init
