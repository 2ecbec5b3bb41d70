#include "listening_sockets.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace ccbox::server {

namespace {

constexpr int backlog = 256;
constexpr int first_systemd_descriptor = 3;

union any_address {
  sockaddr generic;
  sockaddr_in v4;
  sockaddr_in6 v6;
  sockaddr_un local;
};

error wrong_address(const std::string& address) {
  return {error_code::invalid_argument, "--listen " + quoted(address) + " is no loopback address with a port",
          "127.0.0.1:PORT or [::1]:PORT; other machines reach a server through a tunnel of their own"};
}

unique_fd stream_socket(int family) {
  return unique_fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

result<void> remove_dead_socket(const std::string& path, const sockaddr_un& where) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) return {};
  if (!S_ISSOCK(info.st_mode))
    return error{error_code::conflict, quoted(path) + " exists and is no socket",
                 "name another one with --socket"};
  const auto probe = stream_socket(AF_UNIX);
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0 || errno == EAGAIN)
    return error{error_code::conflict, "somebody listens on " + quoted(path) + " already",
                 "name another one with --socket"};
  if (::unlink(path.c_str()) != 0) return system_error("unlink", path, errno);
  return {};
}

}  // namespace

result<unique_fd> listen_on_unix(const std::string& path) {
  sockaddr_un where = {};
  where.sun_family = AF_UNIX;
  if (path.size() >= sizeof where.sun_path)
    return error{error_code::too_large,
                 "the socket's path " + quoted(path) + " is longer than a socket's may be",
                 "name a shorter one with --socket"};
  std::memcpy(where.sun_path, path.data(), path.size());
  if (auto free = remove_dead_socket(path, where); !free) return free.error();
  auto fd = stream_socket(AF_UNIX);
  if (!fd) return system_error("socket", path, errno);
  // The mode that bind() gives it; between bind() and chmod() anybody could connect.
  if (::fchmod(fd.get(), 0600) != 0) return system_error("fchmod", path, errno);
  if (::bind(fd.get(), &reinterpret_cast<const sockaddr&>(where), sizeof where) != 0)
    return system_error("bind", path, errno, "does its directory exist?");
  if (::chmod(path.c_str(), 0600) != 0) return system_error("chmod", path, errno);
  if (::listen(fd.get(), backlog) != 0) return system_error("listen", path, errno);
  return fd;
}

result<unique_fd> listen_on_loopback(const std::string& address) {
  const auto colon = address.rfind(':');
  if (colon == std::string::npos) return wrong_address(address);
  const std::string host = address.substr(0, colon), digits = address.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (bad != std::errc() || end != digits.data() + digits.size()) return wrong_address(address);
  any_address where = {};
  socklen_t size = 0;
  if (host == "127.0.0.1") {
    where.v4.sin_family = AF_INET;
    where.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    where.v4.sin_port = htons(port);
    size = sizeof where.v4;
  } else if (host == "[::1]") {
    where.v6.sin6_family = AF_INET6;
    where.v6.sin6_addr = in6addr_loopback;
    where.v6.sin6_port = htons(port);
    size = sizeof where.v6;
  } else {
    return wrong_address(address);
  }
  auto fd = stream_socket(where.generic.sa_family);
  if (!fd) return system_error("socket", address, errno);
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd.get(), &where.generic, size) != 0)
    return system_error("bind", address, errno, errno == EADDRINUSE ? "name another port with --listen" : "");
  if (::listen(fd.get(), backlog) != 0) return system_error("listen", address, errno);
  return fd;
}

result<std::vector<unique_fd>> sockets_from_systemd() {
  std::vector<unique_fd> out;
  const char* pid = std::getenv("LISTEN_PID");
  const char* count = std::getenv("LISTEN_FDS");
  const bool ours = pid && count && std::to_string(::getpid()) == pid;
  const int sockets = ours ? std::atoi(count) : 0;
  for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"})
    ::unsetenv(name);
  for (int i = 0; i < sockets; ++i) {
    unique_fd fd(first_systemd_descriptor + i);
    ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
    ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
    int type = 0, listening = 0;
    socklen_t size = sizeof type;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM ||
        ::getsockopt(fd.get(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || !listening)
      return error{error_code::invalid_argument,
                   "descriptor " + std::to_string(fd.get()) + " from systemd is no listening stream socket",
                   "ListenStream= in the socket unit"};
    any_address where = {};
    size = sizeof where;
    ::getsockname(fd.get(), &where.generic, &size);
    const bool loopback =
        (where.generic.sa_family == AF_INET && ntohl(where.v4.sin_addr.s_addr) >> 24 == 127) ||
        (where.generic.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&where.v6.sin6_addr));
    if (where.generic.sa_family != AF_UNIX && !loopback)
      return error{error_code::invalid_argument,
                   "systemd listens on " + address_of(fd.get()) + ", which is not this machine alone",
                   "ListenStream= a path, 127.0.0.1:PORT or [::1]:PORT"};
    out.push_back(std::move(fd));
  }
  return out;
}

bool is_tcp(int socket) {
  any_address where = {};
  socklen_t size = sizeof where;
  return ::getsockname(socket, &where.generic, &size) == 0 && where.generic.sa_family != AF_UNIX;
}

std::string address_of(int socket) {
  any_address where = {};
  socklen_t size = sizeof where;
  if (::getsockname(socket, &where.generic, &size) != 0) return "?";
  char text[INET6_ADDRSTRLEN] = {};
  if (where.generic.sa_family == AF_INET)
    return std::string(::inet_ntop(AF_INET, &where.v4.sin_addr, text, sizeof text)) + ":" +
           std::to_string(ntohs(where.v4.sin_port));
  if (where.generic.sa_family == AF_INET6)
    return "[" + std::string(::inet_ntop(AF_INET6, &where.v6.sin6_addr, text, sizeof text)) +
           "]:" + std::to_string(ntohs(where.v6.sin6_port));
  return where.local.sun_path;
}

void notify_systemd(const std::string& state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  if (!path || (path[0] != '/' && path[0] != '@')) return;
  sockaddr_un where = {};
  where.sun_family = AF_UNIX;
  const auto length = std::strlen(path);
  if (length >= sizeof where.sun_path) return;
  std::memcpy(where.sun_path, path, length);
  if (path[0] == '@') where.sun_path[0] = '\0';
  const unique_fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ::sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&where),
           static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length));
}

}  // namespace ccbox::server
