#include "id_map.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <system_error>

#include "os.hpp"

namespace ccbox {
namespace {

result<std::string> read_small_file(const std::string& path) {
  unique_fd fd(static_cast<int>(os::call(SYS_openat, AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC, 0)));
  if (!fd) return system_error("open", path, errno);
  std::string text(64 << 10, '\0');
  const long n = os::call(SYS_read, fd.get(), text.data(), text.size());
  if (n < 0) return system_error("read", path, errno);
  text.resize(static_cast<std::size_t>(n));
  return text;
}

// The ids that exist here, each mapped to itself: "0 0 4294967295" on a host, less in a container.
result<std::string> identity_map(const std::string& own_map_path) {
  auto own = read_small_file(own_map_path);
  if (!own) return own.error();
  std::string map;
  const char* at = own->c_str();
  unsigned long first = 0, outside = 0, count = 0;
  int used = 0;
  while (std::sscanf(at, "%lu %lu %lu%n", &first, &outside, &count, &used) == 3) {
    map += std::to_string(first) + " " + std::to_string(first) + " " + std::to_string(count) + "\n";
    at += used;
  }
  return map;
}

int write_map(pid_t pid, const char* file, const std::string& map) {
  const std::string path = "/proc/" + std::to_string(pid) + "/" + file;
  unique_fd fd(static_cast<int>(os::call(SYS_openat, AT_FDCWD, path.c_str(), O_WRONLY | O_CLOEXEC, 0)));
  if (!fd) return errno;
  const long n = os::call(SYS_write, fd.get(), map.data(), map.size());
  return n < 0 ? errno : static_cast<std::size_t>(n) == map.size() ? 0 : EIO;
}

void serve(int socket, std::string uids, std::string gids) {
  pid_t pid = 0;
  if (::read(socket, &pid, sizeof pid) != sizeof pid) return;
  int answer = write_map(pid, "gid_map", gids);
  if (answer == 0) answer = write_map(pid, "uid_map", uids);
  [[maybe_unused]] const auto n = ::send(socket, &answer, sizeof answer, MSG_NOSIGNAL);
}

}  // namespace

result<std::unique_ptr<id_map_writer>> id_map_writer::start() {
  std::unique_ptr<id_map_writer> w(new id_map_writer);
  auto uids = identity_map("/proc/self/uid_map");
  if (!uids) return uids.error();
  auto gids = identity_map("/proc/self/gid_map");
  if (!gids) return gids.error();
  int ends[2];
  if (os::call(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
    return system_error("socketpair", "", errno);
  }
  w->child_end_.reset(ends[0]);
  w->our_end_.reset(ends[1]);
  try {
    w->thread_ = std::thread(serve, ends[1], std::move(*uids), std::move(*gids));
  } catch (const std::system_error& e) {
    return system_error("pthread_create", "", e.code().value());
  }
  return w;
}

id_map_writer::~id_map_writer() {
  if (!thread_.joinable()) return;
  ::shutdown(child_end_.get(), SHUT_RDWR);  // a child that died before it asked
  thread_.join();
}

}  // namespace ccbox
