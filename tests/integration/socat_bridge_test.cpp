#include "socat_bridge.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>

#include "support/event_loop.hpp"
#include "support/os_faults.hpp"
#include "support/result_printing.hpp"
#include "support/run_command.hpp"
#include "unique_fd.hpp"

using namespace ccbox;

namespace {

struct tcp_listener {
  unique_fd socket;
  std::uint16_t port = 0;
};

tcp_listener listen_on_loopback() {
  tcp_listener made;
  made.socket.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(bind(made.socket.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(listen(made.socket.get(), 100) == 0);
  REQUIRE(getsockname(made.socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  made.port = ntohs(address.sin_port);
  return made;
}

unique_fd connect_to(std::uint16_t port) {
  unique_fd made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  REQUIRE(connect(made.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  return made;
}

void say(const unique_fd& to, const std::string& text) {
  REQUIRE(send(to.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
}

struct fixture {
  test::event_loop loop;
  tcp_listener inside = listen_on_loopback();
  std::unique_ptr<socat_bridge> bridge;

  fixture() {
    auto made = socat_bridge::start(loop.strand(), {{CCBOX_LISTENER_HTTP, inside.socket.get(),
                                                     "127.0.0.1:" + std::to_string(inside.port)}});
    REQUIRE_MESSAGE(made, made.error().what);
    bridge = std::move(*made);
  }
  // While the loop runs: the bridge accepts.
  bool readable(int fd) {
    return test::eventually([&] {
      loop.settle();
      pollfd waiting{fd, POLLIN, 0};
      return poll(&waiting, 1, 0) == 1;
    });
  }
  std::string hear(const unique_fd& from) {
    REQUIRE(readable(from.get()));
    char buffer[256];
    const ssize_t got = recv(from.get(), buffer, sizeof buffer, 0);
    return got <= 0 ? std::string() : std::string(buffer, static_cast<std::size_t>(got));
  }
  unique_fd accept_outside() {
    const int listener = bridge->listeners().at(0).fd;
    REQUIRE(readable(listener));
    return unique_fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  }
};

}  // namespace

TEST_CASE_FIXTURE(fixture, "a connection inside comes out at the Unix socket, both ways, with half-close") {
  CHECK(bridge->listeners().at(0).kind == CCBOX_LISTENER_HTTP);
  CHECK(bridge->listeners().at(0).address == "127.0.0.1:" + std::to_string(inside.port));
  const auto client = connect_to(inside.port);
  say(client, "early");
  const auto proxy = accept_outside();
  CHECK(hear(proxy) == "early");
  say(proxy, "answer");
  CHECK(hear(client) == "answer");
  shutdown(client.get(), SHUT_WR);
  CHECK(hear(proxy).empty());
  say(proxy, "late");
  CHECK(hear(client) == "late");
}

TEST_CASE_FIXTURE(fixture, "the Unix socket and the directory that it was bound in have no name any more") {
  sockaddr_un address{};
  socklen_t size = sizeof address;
  REQUIRE(getsockname(bridge->listeners().at(0).fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  const std::string path = address.sun_path;
  REQUIRE(path.find("/ccbox-") != std::string::npos);
  CHECK_FALSE(test::exists(path));
  CHECK_FALSE(test::exists(path.substr(0, path.rfind('/'))));
}

TEST_CASE_FIXTURE(fixture, "ended connections leave no process, and destroying the bridge ends the others") {
  const auto before = test::take_footprint();
  {
    const auto client = connect_to(inside.port);
    const auto proxy = accept_outside();
    say(client, "x");
    CHECK(hear(proxy) == "x");
  }
  REQUIRE(test::eventually([&] {
    loop.settle();
    return test::take_footprint() == before;
  }));
  const auto client = connect_to(inside.port);
  const auto proxy = accept_outside();
  bridge.reset();
  CHECK(hear(client).empty());
  CHECK(hear(proxy).empty());
}

TEST_CASE("a socket that is none is an error") {
  test::event_loop loop;
  const unique_fd file(open("/dev/null", O_RDONLY | O_CLOEXEC));
  CHECK_FALSE(socat_bridge::start(loop.strand(), {{CCBOX_LISTENER_HTTP, -1, "127.0.0.1:1"}}));
  CHECK_FALSE(socat_bridge::start(loop.strand(), {{CCBOX_LISTENER_HTTP, file.get(), "127.0.0.1:1"}}));
}
