#include "net_connect/relay.hpp"

#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

namespace ccbox {

namespace {

// One direction: what was read and not written yet, in a buffer that is empty before more is read.
struct direction {
  int from, to;
  bool to_socket;
  char bytes[16 * 1024];
  std::size_t begin = 0, end = 0;
  bool input_ended = false, over = false;

  bool full() const { return begin < end; }

  bool read_some() {
    const ssize_t got = read(from, bytes, sizeof bytes);
    if (got < 0) return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK;
    begin = 0;
    end = static_cast<std::size_t>(got);
    input_ended = got == 0;
    return true;
  }

  bool write_some() {
    // A pipe that is ready takes PIPE_BUF bytes without blocking; neither end is made non-blocking, since
    // both may be shared with others.
    const std::size_t count = std::min<std::size_t>(end - begin, to_socket ? sizeof bytes : PIPE_BUF);
    const ssize_t done = to_socket ? send(to, bytes + begin, count, MSG_DONTWAIT | MSG_NOSIGNAL)
                                   : write(to, bytes + begin, count);
    if (done < 0) return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK;
    begin += static_cast<std::size_t>(done);
    return true;
  }

  void finish() {
    over = true;
    if (to_socket)
      shutdown(to, SHUT_WR);
    else
      close(to);
  }
};

}  // namespace

bool relay(int socket) {
  direction both[] = {{STDIN_FILENO, socket, true, {}}, {socket, STDOUT_FILENO, false, {}}};
  bool sound = true;
  while (sound && !(both[0].over && both[1].over)) {
    pollfd waiting[2];
    for (int i = 0; i < 2; ++i) {
      auto& d = both[i];
      if (!d.over && d.input_ended && !d.full()) d.finish();
      const bool writes = d.full();
      waiting[i] = {d.over ? -1 : writes ? d.to : d.from, static_cast<short>(writes ? POLLOUT : POLLIN), 0};
    }
    if (both[0].over && both[1].over) break;
    if (poll(waiting, 2, -1) < 0 && errno != EINTR) return false;
    for (int i = 0; i < 2 && sound; ++i) {
      if (waiting[i].fd < 0 || waiting[i].revents == 0) continue;
      sound = waiting[i].events == POLLOUT ? both[i].write_some() : both[i].read_some();
    }
    // Whoever reads what we print has gone: nothing is left to do for it.
    if (!sound && errno == EPIPE) break;
  }
  close(socket);
  return sound;
}

}  // namespace ccbox
