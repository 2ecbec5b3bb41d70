#include "edge_polling.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace ccbox::bench {

namespace {

void watch(int epoll, int fd, std::uint32_t what, void* of) {
  epoll_event event = {};
  event.events = what;
  event.data.ptr = of;
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

}  // namespace

void make_non_blocking(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

void watch_listener(int epoll, int fd) {
  watch(epoll, fd, EPOLLIN, nullptr);
}

void watch_edges(int epoll, int fd, void* of) {
  watch(epoll, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, of);
}

int accept_waiting(int listener) {
  const int fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd >= 0) send_without_delay(fd);
  return fd;
}

void send_without_delay(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace ccbox::bench
