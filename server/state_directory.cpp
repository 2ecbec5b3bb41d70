#include "state_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace ccbox::server {

namespace {

constexpr char other_directory[] = "name another one with --state-directory";

std::string pid_in(int lock) {
  char text[32] = {};
  const auto length = ::pread(lock, text, sizeof text - 1, 0);
  const std::string pid(text, length > 0 ? static_cast<std::size_t>(length) : 0);
  return pid.find_first_not_of("0123456789") == std::string::npos && !pid.empty() ? " (pid " + pid + ")" : "";
}

result<void> check_owner(int directory, const std::string& path) {
  struct stat info;
  if (::fstat(directory, &info) != 0) return system_error("stat", path, errno);
  if (info.st_uid != ::geteuid())
    return error{error_code::permission_denied, quoted(path) + " belongs to somebody else", other_directory};
  if (info.st_mode & 022)
    return error{error_code::permission_denied, "others may write " + quoted(path),
                 "chmod 700 " + quoted(path)};
  return {};
}

}  // namespace

result<state_directory> state_directory::take(const std::string& path) {
  if (path.empty() || path.front() != '/')
    return error{error_code::invalid_argument, "state directory " + quoted(path) + " is not an absolute path",
                 "write it from '/' on"};
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return system_error("mkdir", path, errno, other_directory);
  const unique_fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory) return system_error("open", path, errno, other_directory);
  if (auto fine = check_owner(directory.get(), path); !fine) return fine.error();
  unique_fd lock(::openat(directory.get(), "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock) return system_error("open", path + "/lock", errno, other_directory);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return system_error("flock", path + "/lock", errno);
    return error{error_code::conflict,
                 "another cc_server" + pid_in(lock.get()) + " uses the state directory " + quoted(path),
                 "stop it, or name another one with --state-directory"};
  }
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(lock.get(), 0) != 0 || ::pwrite(lock.get(), pid.data(), pid.size(), 0) < 0)
    return system_error("write", path + "/lock", errno);
  return state_directory(path, std::move(lock));
}

std::string default_state_directory() {
  if (const char* given = std::getenv("RUNTIME_DIRECTORY"); given && given[0] == '/') {
    const std::string list(given);
    return list.substr(0, list.find(':'));
  }
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime && runtime[0] == '/')
    return std::string(runtime) + "/cc_server";
  if (::geteuid() == 0) return "/run/cc_server";
  return "/tmp/cc_server-" + std::to_string(::geteuid());
}

}  // namespace ccbox::server
