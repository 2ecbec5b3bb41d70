#include "socat_bridge.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/event_loop.hpp"
#include "support/os_faults.hpp"
#include "support/result_printing.hpp"
#include "support/run_command.hpp"
#include "support/temporary_directory.hpp"
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

// Is a directory made in `path`, where XDG_RUNTIME_DIR names it? None may be left.
bool is_used_as_runtime_directory(const std::string& path) {
  const char* before = getenv("XDG_RUNTIME_DIR");
  const std::string kept = before ? before : "";
  REQUIRE(setenv("XDG_RUNTIME_DIR", path.c_str(), 1) == 0);
  const unique_fd watch(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  REQUIRE(inotify_add_watch(watch.get(), path.c_str(), IN_CREATE) >= 0);
  { const fixture started; }
  if (before)
    setenv("XDG_RUNTIME_DIR", kept.c_str(), 1);
  else
    unsetenv("XDG_RUNTIME_DIR");
  CHECK(std::filesystem::is_empty(path));
  char events[4096];
  return read(watch.get(), events, sizeof events) > 0;
}

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

TEST_CASE("the Unix socket's directory is made where nobody else can replace it, and goes away again") {
  const test::temporary_directory parent;
  const std::string& path = parent.path();
  REQUIRE(chmod(path.c_str(), 0700) == 0);
  CHECK(is_used_as_runtime_directory(path));
  for (const mode_t mode : {0770, 0702}) {
    REQUIRE(chmod(path.c_str(), mode) == 0);
    CHECK_FALSE(is_used_as_runtime_directory(path));
  }
  REQUIRE(chmod(path.c_str(), 0700) == 0);
  const bool is_someone_elses = geteuid() == 0;  // who is not root could not write to such a one
  if (is_someone_elses) REQUIRE(chown(path.c_str(), 65534, 65534) == 0);
  CHECK(is_used_as_runtime_directory(path) == !is_someone_elses);
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
