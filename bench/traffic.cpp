#include "traffic.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace ccbox::bench {

namespace {

using clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "bench: %s\n", what.c_str());
  std::exit(1);
}

int connect_to(std::uint16_t port, const std::string& name) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where = {};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  where.sin_port = htons(port);
  if (fd < 0 || ::connect(fd, reinterpret_cast<sockaddr*>(&where), sizeof where) != 0)
    fail(name + " takes no connection: " + std::strerror(errno));
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

void send_all(int fd, const std::string& text, const std::string& name) {
  if (::send(fd, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<std::ptrdiff_t>(text.size()))
    fail(name + " closed a connection too early");
}

struct answer {
  std::string head;
  std::string body;  // what of it came along
};

answer read_head(int fd, const std::string& name) {
  std::string got;
  char bytes[4096];
  for (;;) {
    if (const auto end = got.find("\r\n\r\n"); end != got.npos) {
      answer out{got.substr(0, end + 4), got.substr(end + 4)};
      if (out.head.compare(0, 7, "HTTP/1.") != 0 || out.head.compare(8, 4, " 200") != 0)
        fail(name + " answers " + out.head.substr(0, out.head.find('\r')));
      return out;
    }
    const auto n = ::recv(fd, bytes, sizeof bytes, 0);
    if (n <= 0) fail(name + " closed a connection without an answer");
    got.append(bytes, static_cast<std::size_t>(n));
  }
}

void read_body(int fd, std::string body, std::size_t length, const std::string& name) {
  char bytes[256];
  while (body.size() < length) {
    const auto n = ::recv(fd, bytes, sizeof bytes, 0);
    if (n <= 0) fail(name + " closed a connection within an answer");
    body.append(bytes, static_cast<std::size_t>(n));
  }
}

std::string get(std::uint64_t bytes) {
  return "GET /" + std::to_string(bytes) + " HTTP/1.1\r\nHost: origin\r\n\r\n";
}

}  // namespace

int open_tunnel(const peer& by, std::uint16_t origin_port) {
  const int fd = connect_to(by.port, by.name);
  if (by.tunnels == opening::connect) {
    const auto at = "127.0.0.1:" + std::to_string(origin_port);
    send_all(fd, "CONNECT " + at + " HTTP/1.1\r\nHost: " + at + "\r\n\r\n", by.name);
    read_head(fd, by.name);
  }
  send_all(fd, get(2), by.name);
  read_body(fd, read_head(fd, by.name).body, 2, by.name);
  return fd;
}

double download_ms(const peer& by, std::uint16_t origin_port, std::size_t count, std::uint64_t total_bytes) {
  struct stream {
    int fd = -1;
    std::uint64_t left = 0;
  };
  std::vector<stream> streams(count);
  for (auto& one : streams)
    one.fd = open_tunnel(by, origin_port);
  const auto each = total_bytes / count;
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  const auto start = clock::now();
  for (auto& one : streams) {
    send_all(one.fd, get(each), by.name);
    one.left = each - read_head(one.fd, by.name).body.size();
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.ptr = &one;
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, one.fd, &event);
  }
  for (std::size_t open = count; open > 0;) {
    epoll_event events[64];
    const int ready = ::epoll_wait(epoll, events, 64, -1);
    for (int i = 0; i < ready; ++i) {
      auto& one = *static_cast<stream*>(events[i].data.ptr);
      // Thrown away by the kernel: the client is to be the last one to be short of time.
      const auto n = ::recv(one.fd, nullptr, 4 * 1024 * 1024, MSG_TRUNC | MSG_DONTWAIT);
      if (n < 0 && errno == EAGAIN) continue;
      if (n <= 0) fail(by.name + " closed a connection within an answer");
      one.left -= static_cast<std::uint64_t>(n);
      if (one.left > 0) continue;
      ::epoll_ctl(epoll, EPOLL_CTL_DEL, one.fd, nullptr);
      --open;
    }
  }
  const auto took = std::chrono::duration<double, std::milli>(clock::now() - start).count();
  for (const auto& one : streams)
    ::close(one.fd);
  ::close(epoll);
  return took;
}

void connect_repeatedly(const peer& by, std::uint16_t origin_port, int count) {
  for (int i = 0; i < count; ++i)
    ::close(open_tunnel(by, origin_port));
}

void request_repeatedly(const peer& by, std::uint16_t origin_port, int count) {
  const auto at = "127.0.0.1:" + std::to_string(origin_port);
  const auto request =
      "GET http://" + at + "/2 HTTP/1.1\r\nHost: " + at + "\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n";
  int fd = -1;
  for (int i = 0; i < count; ++i) {
    if (fd < 0) fd = connect_to(by.http_port.value(), by.name);
    send_all(fd, request, by.name);
    auto got = read_head(fd, by.name);
    read_body(fd, std::move(got.body), 2, by.name);
    if (by.ends_connections || got.head.find("onnection: close") != got.head.npos) {
      ::close(fd);
      fd = -1;
    }
  }
  if (fd >= 0) ::close(fd);
}

}  // namespace ccbox::bench
