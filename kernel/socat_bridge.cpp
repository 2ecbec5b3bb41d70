#include "socat_bridge.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "log.hpp"
#include "process.hpp"
#include "unique_fd.hpp"
#include "watched_descriptor.hpp"

namespace ccbox {

namespace asio = boost::asio;
using asio::posix::stream_descriptor;

namespace {

constexpr int backlog = 4096;
constexpr int target_number = 3;             // under which socat has the Unix socket
constexpr std::size_t most_processes = 256;  // further connections wait in the backlog
constexpr std::chrono::milliseconds pause_when_exhausted{100};

// What cannot be searched by others, for the moment that a socket has a name. Everything is done relative to
// descriptors: whoever may rename what is above gains nothing.
struct private_directory {
  unique_fd parent, self;  // O_PATH
  std::string name;        // in parent; empty: none was made
  ~private_directory() {
    if (!name.empty()) ::unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR);
  }
};

std::string path_of(const unique_fd& directory) {
  return "/proc/self/fd/" + std::to_string(directory.get());
}

// Nobody but this user and root can move or replace what this user makes in it.
bool keeps_entries(const unique_fd& directory) {
  struct stat status {};
  if (::fstat(directory.get(), &status) != 0) return false;
  if (status.st_uid != 0 && status.st_uid != ::geteuid()) return false;
  return (status.st_mode & 022) == 0 || (status.st_mode & S_ISVTX) != 0;
}

bool is_own_node(int fd, mode_t type) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == type && status.st_uid == ::geteuid();
}

bool make_inside(const char* parent, private_directory& made) {
  made.parent.reset(::open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!made.parent || !keeps_entries(made.parent)) return false;
  std::string path = path_of(made.parent) + "/ccbox-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return false;
  made.name = path.substr(path.rfind('/') + 1);
  made.self.reset(
      ::openat(made.parent.get(), made.name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return made.self && is_own_node(made.self.get(), S_IFDIR);
}

std::unique_ptr<private_directory> make_private_directory() {
  for (const char* parent : {static_cast<const char*>(std::getenv("XDG_RUNTIME_DIR")), "/run", "/tmp"}) {
    if (parent == nullptr || *parent != '/') continue;
    auto made = std::make_unique<private_directory>();
    if (make_inside(parent, *made)) return made;
  }
  return nullptr;
}

struct unix_listener {
  unique_fd socket;
  unique_fd place;  // O_PATH: what a connect to /proc/self/fd/N reaches
};

result<unix_listener> listen_unseen(const private_directory& directory) {
  unix_listener made;
  made.socket.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!made.socket) return system_error("socket", "", errno);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = path_of(directory.self) + "/s";
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  // The file gets the mode of the socket.
  if (::fchmod(made.socket.get(), 0600) < 0 ||
      ::bind(made.socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) < 0)
    return system_error("bind", path, errno);
  made.place.reset(::openat(directory.self.get(), "s", O_PATH | O_NOFOLLOW | O_CLOEXEC));
  const int failure = errno;
  ::unlinkat(directory.self.get(), "s", 0);
  if (!made.place) return system_error("open", path, failure);
  if (!is_own_node(made.place.get(), S_IFSOCK))
    return error{error_code::permission_denied, "somebody else's file is in place of a socket's", ""};
  if (::listen(made.socket.get(), backlog) < 0) return system_error("listen", path, errno);
  return made;
}

// Where one listening socket of the enclosure leads.
struct passage {
  passage(const asio::any_io_executor& strand, unix_listener u) : inside(strand), outside(std::move(u)) {}
  stream_descriptor inside;
  unix_listener outside;
};

}  // namespace

struct socat_bridge::impl : std::enable_shared_from_this<impl> {
  explicit impl(asio::any_io_executor s) : strand(std::move(s)), pause(strand) {}

  struct relay {
    relay(child started, const asio::any_io_executor& strand) : process(std::move(started)), end(strand) {}
    child process;
    stream_descriptor end;
  };

  const asio::any_io_executor strand;
  asio::steady_timer pause;  // of all passages, while nothing more can be started
  std::string program;
  std::vector<std::shared_ptr<passage>> passages;
  std::vector<egress_listener> listeners;
  std::map<pid_t, std::shared_ptr<relay>> relays;
  bool stopped = false;

  result<void> add(const egress_listener& socket, const private_directory& directory) {
    auto outside = listen_unseen(directory);
    if (!outside) return outside.error();
    int listening = 0;
    socklen_t size = sizeof listening;
    if (::getsockopt(socket.fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) < 0 || listening != 1)
      return error{error_code::invalid_argument, "what is to be bridged is no listening socket", ""};
    unique_fd copy(::fcntl(socket.fd, F_DUPFD_CLOEXEC, 3));
    if (!copy) return system_error("duplicate", "a listening socket", errno);
    const int flags = ::fcntl(copy.get(), F_GETFL);
    if (flags < 0 || ::fcntl(copy.get(), F_SETFL, flags | O_NONBLOCK) < 0)
      return system_error("make non-blocking", "a listening socket", errno);
    auto made = std::make_shared<passage>(strand, std::move(*outside));
    boost::system::error_code e;
    made->inside.assign(copy.get(), e);
    if (e) return system_error("watch", "a listening socket", e.value());
    copy.release();
    listeners.push_back({socket.kind, made->outside.socket.get(), socket.address});
    passages.push_back(std::move(made));
    return {};
  }

  void background(asio::awaitable<void> work) {
    asio::co_spawn(strand, std::move(work), [](std::exception_ptr failure) {
      if (failure) log_event(log_level::error, "socat_bridge");
    });
  }

  void stop() {
    stopped = true;
    pause.cancel();
    for (auto& each : passages)
      unwatch_and_close(each->inside);
    for (auto& [pid, each] : relays)
      unwatch_and_close(each->end);
    relays.clear();  // kills
  }

  // Stops accepting for a moment; the connections wait.
  static asio::awaitable<void> rest(std::shared_ptr<impl> self) {
    self->pause.expires_after(pause_when_exhausted);
    co_await self->pause.async_wait(asio::as_tuple(asio::use_awaitable));
  }

  static asio::awaitable<void> accept_all(std::shared_ptr<impl> self, std::shared_ptr<passage> through) {
    while (!self->stopped) {
      if (self->relays.size() >= most_processes) {
        co_await rest(self);
        continue;
      }
      const unique_fd connection(::accept4(through->inside.native_handle(), nullptr, nullptr, SOCK_CLOEXEC));
      if (connection) {
        if (!self->relay_through(*through, connection)) co_await rest(self);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        co_await through->inside.async_wait(stream_descriptor::wait_read,
                                            asio::as_tuple(asio::use_awaitable));
      } else if (errno != EINTR && errno != ECONNABORTED) {
        co_await rest(self);
      }
    }
  }

  bool relay_through(const passage& through, const unique_fd& connection) {
    spawn_request request;
    // -t: how long the one direction goes on after the other has ended. The proxies have their own limits.
    request.argv = {program, "-t", "3600", "FD:0",
                    "UNIX-CONNECT:/proc/self/fd/" + std::to_string(target_number)};
    request.env = {{"PATH", "/usr/bin:/bin"}};
    request.descriptors = {{connection.get(), 0}, {through.outside.place.get(), target_number}};
    auto process = spawn(request);
    if (!process) {
      log_event(log_level::warn, "socat",
                {{"code", to_string(process.error().code)}, {"what", process.error().what}});
      return false;
    }
    const pid_t pid = process->pid();
    unique_fd end(::fcntl(process->pidfd(), F_DUPFD_CLOEXEC, 3));
    auto made = std::make_shared<relay>(std::move(*process), strand);
    boost::system::error_code e;
    if (end) made->end.assign(end.get(), e);
    if (!end || e) return false;  // its destructor ends it
    end.release();
    relays.emplace(pid, made);
    background(follow(shared_from_this(), made));
    return true;
  }

  static asio::awaitable<void> follow(std::shared_ptr<impl> self, std::shared_ptr<relay> followed) {
    while (!self->stopped && !followed->process.try_wait())
      co_await followed->end.async_wait(stream_descriptor::wait_read, asio::as_tuple(asio::use_awaitable));
    unwatch_and_close(followed->end);
    if (!self->stopped) self->relays.erase(followed->process.pid());
  }
};

std::string find_socat() {
  for (const char* path : {"/usr/bin/socat", "/bin/socat", "/usr/local/bin/socat"})
    if (::access(path, X_OK) == 0) return path;
  return {};
}

socat_bridge::socat_bridge() = default;

result<std::unique_ptr<socat_bridge>> socat_bridge::start(asio::any_io_executor strand,
                                                          const std::vector<egress_listener>& sockets) {
  std::unique_ptr<socat_bridge> made(new socat_bridge);
  made->impl_ = std::make_shared<impl>(std::move(strand));
  made->impl_->program = find_socat();
  if (made->impl_->program.empty()) {
    return error{error_code::unavailable, "`bridge: socat` is set, and socat is not installed",
                 "sudo apt-get install socat, or write `bridge: direct` into the file of egress rules"};
  }
  const auto directory = make_private_directory();
  if (!directory) return system_error("make a directory in", "/tmp", errno);
  for (const auto& socket : sockets)
    if (auto added = made->impl_->add(socket, *directory); !added) return added.error();
  for (const auto& each : made->impl_->passages)
    made->impl_->background(impl::accept_all(made->impl_, each));
  return made;
}

socat_bridge::~socat_bridge() {
  if (impl_) impl_->stop();
}

const std::vector<egress_listener>& socat_bridge::listeners() const {
  return impl_->listeners;
}

}  // namespace ccbox
