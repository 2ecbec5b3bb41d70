#include "relay.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edge_polling.hpp"

namespace ccbox::bench {

namespace {

constexpr std::size_t pipe_bytes = 256 * 1024;
constexpr std::string_view established = "HTTP/1.1 200 Connection established\r\n\r\n";

struct pipe_ends {
  int ends[2] = {-1, -1};
};

struct tunnel {
  int client = -1, origin = -1;
  bool connecting = true, over = false;
  struct direction {
    pipe_ends pipe;
    std::size_t held = 0;
    bool ended = false, passed_on = false;
  } up, down;
};

class relay {
 public:
  explicit relay(int listener) : listener_(listener), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    watch_listener(epoll_, listener);
  }

  [[noreturn]] void run() {
    epoll_event events[128];
    for (;;) {
      const int count = ::epoll_wait(epoll_, events, 128, -1);
      for (int i = 0; i < count; ++i) {
        auto* const at = static_cast<tunnel*>(events[i].data.ptr);
        if (!at)
          accept_all();
        else if (!at->over)
          move(*at);
      }
      for (auto* const one : done_)
        delete one;
      done_.clear();
    }
  }

 private:
  void accept_all() {
    for (int fd = 0; (fd = accept_waiting(listener_)) >= 0;) {
      auto* const made = new tunnel;
      made->client = fd;
      watch_edges(epoll_, fd, made);
    }
  }

  void move(tunnel& t) {
    if (t.origin < 0 && !connect(t)) return;
    if (t.connecting) {
      int code = 0;
      socklen_t size = sizeof code;
      sockaddr_in peer;
      socklen_t peer_size = sizeof peer;
      if (::getsockopt(t.origin, SOL_SOCKET, SO_ERROR, &code, &size) != 0 || code != 0) return end(t);
      if (::getpeername(t.origin, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) return;
      t.connecting = false;
      if (::send(t.client, established.data(), established.size(), MSG_NOSIGNAL) < 0) return end(t);
    }
    if (!pump(t.up, t.client, t.origin) || !pump(t.down, t.origin, t.client)) return end(t);
    if (t.up.passed_on && t.down.passed_on) end(t);
  }

  // The head is taken to come in one segment, as the bench sends it.
  bool connect(tunnel& t) {
    char head[1024];
    const auto length = ::recv(t.client, head, sizeof head - 1, 0);
    if (length < 0 && errno == EAGAIN) return false;
    constexpr std::string_view verb = "CONNECT ";
    const std::string_view text(head, static_cast<std::size_t>(length > 0 ? length : 0));
    const auto colon = text.find(':');
    sockaddr_in where = {};
    where.sin_family = AF_INET;
    if (text.substr(0, verb.size()) != verb || colon == text.npos ||
        ::inet_pton(AF_INET, std::string(text.substr(verb.size(), colon - verb.size())).c_str(),
                    &where.sin_addr) != 1)
      return end(t), false;
    where.sin_port = htons(static_cast<std::uint16_t>(std::atoi(head + colon + 1)));
    t.origin = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    send_without_delay(t.origin);
    if (::connect(t.origin, reinterpret_cast<sockaddr*>(&where), sizeof where) != 0 && errno != EINPROGRESS)
      return end(t), false;
    watch_edges(epoll_, t.origin, &t);
    return true;
  }

  // False: broken.
  bool pump(tunnel::direction& d, int from, int to) {
    for (;;) {
      if (d.held == 0 && !d.ended) {
        if (d.pipe.ends[0] < 0) take(d.pipe);
        const auto n =
            ::splice(from, nullptr, d.pipe.ends[1], nullptr, pipe_bytes, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        if (n < 0) return errno == EAGAIN && (give_back(d.pipe), true);
        d.ended = n == 0;
        d.held = static_cast<std::size_t>(n);
      }
      if (d.held > 0) {
        const auto n =
            ::splice(d.pipe.ends[0], nullptr, to, nullptr, d.held, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        if (n < 0) return errno == EAGAIN;
        d.held -= static_cast<std::size_t>(n);
      } else if (d.ended) {
        if (!std::exchange(d.passed_on, true)) ::shutdown(to, SHUT_WR);
        give_back(d.pipe);
        return true;
      }
    }
  }

  void take(pipe_ends& into) {
    if (!free_.empty()) {
      into = free_.back();
      free_.pop_back();
      return;
    }
    if (::pipe2(into.ends, O_CLOEXEC | O_NONBLOCK) != 0) std::abort();
    ::fcntl(into.ends[0], F_SETPIPE_SZ, static_cast<int>(pipe_bytes));
  }

  void give_back(pipe_ends& lent) {
    if (lent.ends[0] >= 0) free_.push_back(std::exchange(lent, {}));
  }

  void end(tunnel& t) {
    t.over = true;
    for (auto* d : {&t.up, &t.down}) {
      if (d->held == 0) {
        give_back(d->pipe);
      } else {
        ::close(d->pipe.ends[0]);
        ::close(d->pipe.ends[1]);
      }
    }
    ::close(t.client);
    if (t.origin >= 0) ::close(t.origin);
    done_.push_back(&t);
  }

  const int listener_, epoll_;
  std::vector<pipe_ends> free_;
  std::vector<tunnel*> done_;
};

}  // namespace

void run_relay(int listener) {
  make_non_blocking(listener);
  relay(listener).run();
}

}  // namespace ccbox::bench
