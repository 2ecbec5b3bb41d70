#include "support/tcp_origin.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "support/listening_socket.hpp"

namespace ccbox::test {

tcp_origin::tcp_origin(script what) : script_(std::move(what)), stop_(::eventfd(0, EFD_CLOEXEC)) {
  listening_socket made;
  socket_ = std::move(made.fd);
  port_ = made.port;
  thread_ = std::thread([this] { accept_all(); });
}

tcp_origin::~tcp_origin() {
  const std::uint64_t one = 1;
  if (::write(stop_.get(), &one, sizeof one) != sizeof one) std::abort();
  thread_.join();
  for (auto& c : conversations_)
    ::shutdown(c.handle.get(), SHUT_RDWR);
  for (auto& c : conversations_)
    c.thread.join();
}

void tcp_origin::accept_all() {
  for (;;) {
    pollfd both[] = {{socket_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    if (::poll(both, 2, -1) < 0 || both[1].revents != 0) return;
    unique_fd fd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd) continue;
    ++connections_;
    unique_fd handle(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
    auto& c = conversations_.emplace_back(conversation{tcp_peer(std::move(fd)), std::move(handle), {}});
    c.thread = std::thread([this, &c] {
      script_(c.peer);
      ::shutdown(c.handle.get(), SHUT_WR);
      c.peer.close();
    });
  }
}

http_origin::http_origin() : origin_([this](tcp_peer& client) { serve(client); }) {}

std::vector<std::string> http_origin::heads() const {
  const std::lock_guard lock(mutex_);
  return heads_;
}

void http_origin::serve(tcp_peer& client) {
  for (;;) {
    const auto head = client.read_until("\r\n\r\n");
    if (head.size() < 4 || head.substr(head.size() - 4) != "\r\n\r\n") return;
    {
      const std::lock_guard lock(mutex_);
      heads_.push_back(head);
    }
    if (!answer(client, head)) return;
  }
}

namespace {

std::string body_of(tcp_peer& client, const std::string& head) {
  const auto length = head.find("Content-Length: ");
  if (length != head.npos) return client.read_exactly(std::strtoul(head.c_str() + length + 16, nullptr, 10));
  std::string body;
  if (head.find("Transfer-Encoding: chunked") == head.npos) return body;
  for (;;) {
    const auto size = std::strtoul(client.read_until("\r\n").c_str(), nullptr, 16);
    body += client.read_exactly(size);
    client.read_until("\r\n");
    if (size == 0) return body;
  }
}

std::string ok(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace

bool http_origin::answer(tcp_peer& client, const std::string& head) {
  const auto from = head.find(' ') + 1;
  const auto path = head.substr(from, head.find(' ', from) - from);
  if (path == "/hello") return client.send(ok("hello"));
  if (path == "/chunked")
    return client.send(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;x=y\r\nchun\r\n2\r\nky\r\n0\r\nX-T: "
        "1\r\n\r\n");
  if (path == "/echo") return client.send(ok(body_of(client, head)));
  if (path == "/continue")
    return client.send("HTTP/1.1 100 Continue\r\n\r\n") && client.send(ok(body_of(client, head)));
  if (path == "/close") {
    client.send("HTTP/1.1 200 OK\r\n\r\nuntil the end");
  } else if (path == "/cut") {
    client.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this");
    client.reset();
  } else if (path == "/garbage") {
    client.send("\x01\x02 this is no HTTP\r\n\r\n");
  } else if (path == "/smuggled") {
    client.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!");
  } else if (path == "/early") {
    client.send("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno\n");
    client.read_all();
  } else if (path == "/hang") {
    client.read_all();
  } else if (path == "/websocket") {
    client.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nfirst");
    for (std::string got; !(got = client.read_exactly(1)).empty();)
      client.send(got);
  }
  return false;
}

}  // namespace ccbox::test
