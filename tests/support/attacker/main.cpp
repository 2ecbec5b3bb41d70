// What runs in place of ccbox-init in tests of the mount view: it does what it is told, over the channel, and
// answers with the errno. No system-call filter is on it, so what it cannot do, the mounts alone refuse.
//
// One SOCK_SEQPACKET message a request: words, each ended by NUL. Answer: u32 errno, then bytes.
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace {

using words = std::vector<std::string>;

struct answer {
  int error = 0;
  std::string data;
};

answer of(long value) {
  return {value < 0 ? errno : 0, {}};
}

answer write_through(int fd, const std::string& text) {
  if (fd < 0) return {errno, {}};
  const auto result = of(::write(fd, text.data(), text.size()));
  ::close(fd);
  return result;
}

answer read_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {errno, {}};
  std::string text(4096, '\0');
  const auto count = ::read(fd, text.data(), text.size());
  const int error = errno;
  ::close(fd);
  if (count < 0) return {error, {}};
  text.resize(static_cast<std::size_t>(count));
  return {0, text};
}

answer list(const std::string& path) {
  DIR* directory = ::opendir(path.c_str());
  if (!directory) return {errno, {}};
  std::vector<std::string> names;
  while (const auto* one = ::readdir(directory))
    if (std::strcmp(one->d_name, ".") != 0 && std::strcmp(one->d_name, "..") != 0)
      names.emplace_back(one->d_name);
  ::closedir(directory);
  std::sort(names.begin(), names.end());
  answer result;
  for (const auto& name : names)
    result.data += name + "\n";
  return result;
}

// Writes through a descriptor that was opened for reading (or for nothing).
answer reopen(const std::string& path, int flags, const std::string& text) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0) return {errno, {}};
  const auto again = "/proc/self/fd/" + std::to_string(fd);
  const auto result = write_through(::open(again.c_str(), O_WRONLY | O_CLOEXEC), text);
  ::close(fd);
  return result;
}

answer link_temporary_file(const std::string& directory, const std::string& path) {
  const int fd = ::open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);
  if (fd < 0) return {errno, {}};
  const auto from = "/proc/self/fd/" + std::to_string(fd);
  const auto result = of(::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW));
  ::close(fd);
  return result;
}

answer connect_to(const sockaddr_un& address, socklen_t length) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return {errno, {}};
  const auto result = of(::connect(fd, reinterpret_cast<const sockaddr*>(&address), length));
  ::close(fd);
  return result;
}

answer connect_unix(const std::string& name, bool abstract) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() + 1 >= sizeof address.sun_path) return {ENAMETOOLONG, {}};
  std::memcpy(address.sun_path + (abstract ? 1 : 0), name.data(), name.size());
  return connect_to(address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + 1));
}

answer connect_inet(const std::string& host, const std::string& port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port.c_str())));
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) return {EINVAL, {}};
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return {errno, {}};
  const auto result = of(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address));
  ::close(fd);
  return result;
}

// In a user and mount namespace of its own, where it has every capability over what it made.
answer in_new_namespaces(const std::function<answer()>& act) {
  const pid_t pid = ::fork();
  if (pid < 0) return {errno, {}};
  if (pid == 0) ::_exit(::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 ? 255 : act().error);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : EINTR, {}};
}

answer describe(const std::string& path) {
  struct stat s {};
  if (::lstat(path.c_str(), &s) != 0) return {errno, {}};
  char text[64];
  std::snprintf(text, sizeof text, "%o", s.st_mode);
  return {0, text};
}

const std::map<std::string, std::function<answer(const words&)>> actions = {
    {"hello",
     [](const words&) {
       return answer{0, std::to_string(::getpid())};
     }},
    {"read", [](const words& w) { return read_file(w.at(1)); }},
    {"list", [](const words& w) { return list(w.at(1)); }},
    {"stat", [](const words& w) { return describe(w.at(1)); }},
    {"write",
     [](const words& w) {
       return write_through(::open(w.at(1).c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC), "evil");
     }},
    // Opens and writes nothing, for files whose content is the host's.
    {"open-write",
     [](const words& w) {
       const int fd = ::open(w.at(1).c_str(), O_WRONLY | O_CLOEXEC);
       const auto result = of(fd);
       if (fd >= 0) ::close(fd);
       return result;
     }},
    {"append",
     [](const words& w) {
       return write_through(::open(w.at(1).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC), "evil");
     }},
    {"create",
     [](const words& w) {
       return write_through(::open(w.at(1).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644), "evil");
     }},
    {"open-create",
     [](const words& w) {
       return write_through(::open(w.at(1).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644), "evil");
     }},
    {"truncate", [](const words& w) { return of(::truncate(w.at(1).c_str(), 0)); }},
    {"chmod", [](const words& w) { return of(::chmod(w.at(1).c_str(), 0777)); }},
    {"chown", [](const words& w) { return of(::lchown(w.at(1).c_str(), ::getuid(), ::getgid())); }},
    {"utimes", [](const words& w) { return of(::utimensat(AT_FDCWD, w.at(1).c_str(), nullptr, 0)); }},
    {"setxattr", [](const words& w) { return of(::setxattr(w.at(1).c_str(), "user.evil", "1", 1, 0)); }},
    {"unlink", [](const words& w) { return of(::unlink(w.at(1).c_str())); }},
    {"rmdir", [](const words& w) { return of(::rmdir(w.at(1).c_str())); }},
    {"mkdir", [](const words& w) { return of(::mkdir(w.at(1).c_str(), 0755)); }},
    {"mkfifo", [](const words& w) { return of(::mkfifo(w.at(1).c_str(), 0644)); }},
    {"symlink", [](const words& w) { return of(::symlink(w.at(1).c_str(), w.at(2).c_str())); }},
    {"link", [](const words& w) { return of(::link(w.at(1).c_str(), w.at(2).c_str())); }},
    {"rename", [](const words& w) { return of(::rename(w.at(1).c_str(), w.at(2).c_str())); }},
    {"exchange",
     [](const words& w) {
       return of(
           ::syscall(SYS_renameat2, AT_FDCWD, w.at(1).c_str(), AT_FDCWD, w.at(2).c_str(), RENAME_EXCHANGE));
     }},
    {"link-temporary", [](const words& w) { return link_temporary_file(w.at(1), w.at(2)); }},
    {"reopen", [](const words& w) { return reopen(w.at(1), O_RDONLY, "evil"); }},
    {"reopen-path", [](const words& w) { return reopen(w.at(1), O_PATH, "evil"); }},
    {"chdir", [](const words& w) { return of(::chdir(w.at(1).c_str())); }},
    {"umount", [](const words& w) { return of(::umount2(w.at(1).c_str(), MNT_DETACH)); }},
    {"remount",
     [](const words& w) {
       return of(::mount("none", w.at(1).c_str(), nullptr, MS_REMOUNT | MS_BIND, nullptr));
     }},
    {"bind",
     [](const words& w) { return of(::mount(w.at(1).c_str(), w.at(2).c_str(), nullptr, MS_BIND, nullptr)); }},
    {"umount-in-new-namespaces",
     [](const words& w) {
       return in_new_namespaces([&] { return of(::umount2(w.at(1).c_str(), MNT_DETACH)); });
     }},
    {"remount-in-new-namespaces",
     [](const words& w) {
       return in_new_namespaces(
           [&] { return of(::mount("none", w.at(1).c_str(), nullptr, MS_REMOUNT | MS_BIND, nullptr)); });
     }},
    {"bind-in-new-namespaces",
     [](const words& w) {
       // The directory around a mask, bound elsewhere without what is mounted in it.
       return in_new_namespaces(
           [&] { return of(::mount(w.at(1).c_str(), w.at(2).c_str(), nullptr, MS_BIND, nullptr)); });
     }},
    {"kill", [](const words& w) { return of(::kill(std::atoi(w.at(1).c_str()), 0)); }},
    {"connect-path", [](const words& w) { return connect_unix(w.at(1), false); }},
    {"connect-abstract", [](const words& w) { return connect_unix(w.at(1), true); }},
    {"connect-inet", [](const words& w) { return connect_inet(w.at(1), w.at(2)); }},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || std::strcmp(argv[1], "--channel") != 0) return 64;
  const int channel = std::atoi(argv[2]);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // as ccbox-init, whose place it takes
  std::string message(65536, '\0');
  while (true) {
    const auto count = ::recv(channel, message.data(), message.size(), 0);
    if (count <= 0) return 0;
    words given;
    for (std::size_t at = 0; at < static_cast<std::size_t>(count);) {
      given.emplace_back(message.c_str() + at);
      at += given.back().size() + 1;
    }
    const auto action = actions.find(given.at(0));
    const auto result = action == actions.end() ? answer{ENOSYS, {}} : action->second(given);
    const auto error = static_cast<std::uint32_t>(result.error);
    std::string reply(reinterpret_cast<const char*>(&error), sizeof error);
    reply += result.data;
    if (::send(channel, reply.data(), reply.size(), MSG_NOSIGNAL) < 0) return 1;
  }
}
