#include "listener.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace ccbox::egress {
namespace {

constexpr int batch = 64, backlog = 4096;

// Only the session's own user may come through a Unix socket, whatever its directory allows.
bool is_ours(int fd) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == ::geteuid() || peer.uid == 0;
}

}  // namespace

listener::listener(worker& where, int fd, std::chrono::milliseconds pause, counters& count, callbacks then)
    : worker_(where),
      socket_(where.executor()),
      pause_(pause),
      counters_(count),
      then_(std::move(then)),
      paused_(where.deadlines(), [this] { resume(); }) {
  const int flags = ::fcntl(fd, F_GETFL);
  ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  int family = AF_INET;
  socklen_t size = sizeof family;
  ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size);
  is_unix_ = family == AF_UNIX;
  // Accepted sockets inherit them. Clients are on this host: no distance asks for more.
  if (!is_unix_) set_stream_options(fd);
  bound_unread(fd);
  boost::system::error_code failed;
  socket_.assign(fd, failed);
  if (!failed) return;
  ::close(fd);
  throw boost::system::system_error(failed, "listener");
}

listener::~listener() = default;

void listener::start() {
  resume();
}

void listener::resume() {
  if (closed_ || waiting_ || !then_.has_room()) return;
  wait();
}

void listener::close() {
  closed_ = true;
  paused_.clear();
  boost::system::error_code ignored;
  socket_.close(ignored);
}

void listener::wait() {
  waiting_ = true;
  socket_.async_wait(asio::posix::descriptor_base::wait_read,
                     [self = shared_from_this()](boost::system::error_code stopped) {
                       self->waiting_ = false;
                       if (!stopped && !self->closed_) self->accept_all();
                     });
}

void listener::accept_all() {
  for (int i = 0; i < batch && !closed_; ++i) {
    if (!then_.has_room()) return;  // resume() goes on
    const int fd = ::accept4(socket_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO) continue;
      if (would_block(errno)) break;
      ++counters_.accept_pauses;
      paused_.after(pause_);
      return;
    }
    if (is_unix_ && !is_ours(fd)) {
      ::close(fd);
      continue;
    }
    ++counters_.accepted;
    stream_socket accepted(worker_.executor());
    if (adopt(accepted, fd)) then_.accepted(std::move(accepted));
  }
  if (!closed_ && !waiting_) wait();
}

int listener::listen_on_loopback() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  sockaddr_in where = {};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0 && ::listen(fd, backlog) == 0)
    return fd;
  const int code = errno;
  ::close(fd);
  errno = code;
  return -1;
}

}  // namespace ccbox::egress
