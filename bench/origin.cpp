#include "origin.hpp"

#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "edge_polling.hpp"

namespace ccbox::bench {

namespace {

constexpr std::size_t block_bytes = 1024 * 1024;

struct connection {
  int fd = -1;
  std::string input;
  std::uint64_t owed = 0;
};

class origin {
 public:
  explicit origin(int listener)
      : listener_(listener),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)),
        block_(::memfd_create("block", MFD_CLOEXEC)) {
    if (::ftruncate(block_, block_bytes) != 0) std::abort();
    watch_listener(epoll_, listener);
  }

  [[noreturn]] void run() {
    epoll_event events[128];
    for (;;) {
      const int count = ::epoll_wait(epoll_, events, 128, -1);
      for (int i = 0; i < count; ++i) {
        auto* const at = static_cast<connection*>(events[i].data.ptr);
        if (!at) {
          accept_all();
        } else if (!serve(*at)) {
          ::close(at->fd);
          delete at;
        }
      }
    }
  }

 private:
  void accept_all() {
    for (int fd = 0; (fd = accept_waiting(listener_)) >= 0;) {
      auto* const made = new connection;
      made->fd = fd;
      watch_edges(epoll_, fd, made);
    }
  }

  // False: it is over.
  bool serve(connection& c) {
    for (;;) {
      if (c.owed > 0) {
        off_t at = 0;
        const auto n = ::sendfile(c.fd, block_, &at, std::min<std::uint64_t>(c.owed, block_bytes));
        if (n < 0) return errno == EAGAIN;
        c.owed -= static_cast<std::uint64_t>(n);
        continue;
      }
      char bytes[4096];
      const auto n = ::recv(c.fd, bytes, sizeof bytes, 0);
      if (n < 0) return errno == EAGAIN;
      if (n == 0) return false;
      c.input.append(bytes, static_cast<std::size_t>(n));
      const auto end = c.input.find("\r\n\r\n");
      if (end == c.input.npos) continue;
      // The number behind the last slash of the target, whichever form the request has.
      const auto version = c.input.find(" HTTP/");
      const auto slash = c.input.rfind('/', version);
      c.owed = std::strtoull(c.input.c_str() + slash + 1, nullptr, 10);
      c.input.erase(0, end + 4);
      std::string head = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(c.owed) + "\r\n\r\n";
      if (c.owed < 64) {
        head.append(c.owed, 'x');
        c.owed = 0;
      }
      if (::send(c.fd, head.data(), head.size(), MSG_NOSIGNAL) != static_cast<std::ptrdiff_t>(head.size()))
        return false;
    }
  }

  const int listener_, epoll_, block_;
};

}  // namespace

void run_origin(int listener) {
  make_non_blocking(listener);
  origin(listener).run();
}

}  // namespace ccbox::bench
