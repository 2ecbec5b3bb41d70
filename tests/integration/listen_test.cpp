// The listening sockets that init makes inside: what init grants, and what the kernel side takes from it.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "enclosure.hpp"
#include "support/event_loop.hpp"
#include "support/init_process.hpp"
#include "support/misbehaving_init.hpp"
#include "support/os_faults.hpp"
#include "support/result_printing.hpp"

using namespace ccbox;
using namespace ccbox::init;
using ccbox::test::init_process;
using ccbox::test::init_setting;

namespace {

test::init_frame ask(init_process& init, std::uint32_t ports, std::uint64_t id = 1000) {
  init.send(frame_type::listen, id, encode_number(ports));
  return init.wait_for(frame_type::listening, id);
}

void check_refused(const test::init_frame& answer, int error_number) {
  REQUIRE(answer.header.type == frame_type::failed);
  const auto why = decode_failed(answer.payload);
  REQUIRE(why);
  CHECK(why->stage == exec_stage::listen);
  CHECK(why->error_number == static_cast<std::uint32_t>(error_number));
}

struct socket_name {
  int family;
  std::string address;
  std::uint16_t port;
};
socket_name name_of(const unique_fd& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  REQUIRE(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    return {AF_INET6, text, ntohs(v6.sin6_port)};
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
  inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
  return {address.ss_family, text, ntohs(v4.sin_port)};
}

bool host_has_v6() {
  const unique_fd probe(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  return probe && bind(probe.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

std::string accepted_text(const unique_fd& listener) {
  const unique_fd peer(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  REQUIRE(peer);
  std::string text;
  char buffer[256];
  for (ssize_t n; (n = read(peer.get(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  return text;
}

struct fixture {
  test::event_loop loop;
  std::unique_ptr<enclosure> start(plan p) {
    auto made =
        loop.run(enclosure::start(loop.strand(), std::move(p), test::init_path(), limit_group(), 10000));
    loop.settle();
    REQUIRE_MESSAGE(made, made.error().what);
    return std::move(*made);
  }
};

}  // namespace

TEST_CASE("each port listens on 127.0.0.1 and, where there is IPv6, on ::1 under the same number") {
  init_process init(init_setting::enclosed);
  const auto answer = ask(init, 2);
  REQUIRE(answer.header.type == frame_type::listening);
  const auto message = decode_listening(answer.payload);
  REQUIRE(message);
  REQUIRE(message->ports.size() == 2);
  REQUIRE(answer.descriptors.size() == message->descriptors());
  CHECK(message->ports[0].number != message->ports[1].number);
  std::size_t next = 0;
  for (const auto& port : message->ports) {
    CHECK(port.has_v6 == host_has_v6());
    const auto v4 = name_of(answer.descriptors[next++]);
    CHECK(v4.address == "127.0.0.1");
    CHECK(v4.port == port.number);
    if (!port.has_v6) continue;
    const auto v6 = name_of(answer.descriptors[next++]);
    CHECK(v6.address == "::1");
    CHECK(v6.port == port.number);
  }
}

TEST_CASE("a command inside reaches whoever accepts on the socket outside") {
  init_process init(init_setting::enclosed);
  const auto answer = ask(init, 1);
  const auto message = decode_listening(answer.payload);
  REQUIRE(message);
  const auto port = std::to_string(message->ports[0].number);
  auto command =
      init_process::command({"bash", "-c", "exec 5<>/dev/tcp/127.0.0.1/" + port + "; echo hello >&5"});
  const auto id = init.exec(command);
  CHECK(accepted_text(answer.descriptors[0]) == "hello\n");
  CHECK(init.wait_exit(id).value == 0);
}

TEST_CASE("no command inherits the sockets, and init keeps none") {
  init_process init(init_setting::enclosed);
  REQUIRE(ask(init, 4).header.type == frame_type::listening);
  const auto found = init.run(init_process::shell("ls -l /proc/self/fd"));
  CHECK(found.output.find("socket:") == std::string::npos);
  const auto inits = "ls -l /proc/" + std::to_string(init.pid()) + "/fd | grep -c socket: || true";
  FILE* counted = popen(inits.c_str(), "r");
  REQUIRE(counted);
  int count = -1;
  CHECK(fscanf(counted, "%d", &count) == 1);
  pclose(counted);
  CHECK(count <= 1);  // the channel; 0 where a process of another user may not be looked at
}

TEST_CASE("sockets are made once, and not after a command has run") {
  SUBCASE("twice") {
    init_process init(init_setting::enclosed);
    REQUIRE(ask(init, 1).header.type == frame_type::listening);
    check_refused(ask(init, 1, 1001), EPERM);
    CHECK(init.run(init_process::command({"true"})).code() == 0);
  }
  SUBCASE("after a command") {
    init_process init(init_setting::enclosed);
    CHECK(init.run(init_process::command({"true"})).code() == 0);
    check_refused(ask(init, 1), EPERM);
  }
  SUBCASE("after a command that did not start") {
    init_process init(init_setting::enclosed);
    CHECK(init.run(init_process::command({"no-such-program"})).failed.has_value());
    check_refused(ask(init, 1), EPERM);
  }
}

TEST_CASE("without a boundary init makes no sockets") {
  init_process init(init_setting::unconfined);
  check_refused(ask(init, 2), EPERM);
  CHECK(init.run(init_process::command({"true"})).code() == 0);
}

TEST_CASE("a listen that makes no sense ends init") {
  for (const std::uint32_t ports : {0u, 5u, 0xffffffffu}) {
    CAPTURE(ports);
    init_process init(init_setting::enclosed);
    init.send(frame_type::listen, 1, encode_number(ports));
    CHECK(WEXITSTATUS(init.wait_end()) == 1);
  }
  init_process init(init_setting::enclosed);
  const unique_fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  init.send(frame_type::listen, 1, encode_number(1), {null.get()});
  CHECK(WEXITSTATUS(init.wait_end()) == 1);
}

TEST_CASE_FIXTURE(fixture, "the kernel side takes the sockets that it asked for") {
  auto e = start(test::misbehaving_plan("listen-right"));
  for (const unsigned count : {0u, init::max_listen_ports + 1})
    CHECK(loop.run(e->listen(count)).error().code == error_code::invalid_argument);
  const auto listeners = loop.run(e->listen(2));
  REQUIRE_MESSAGE(listeners, listeners.error().what);
  REQUIRE(listeners->size() == 2);
  for (const auto& each : *listeners) {
    CHECK(name_of(each.v4).port == each.port);
    CHECK_FALSE(each.v6);
  }
  const auto again = loop.run(e->listen(2));
  REQUIRE_FALSE(again);
  CHECK(again.error().code == error_code::illegal_state);
}

TEST_CASE_FIXTURE(fixture, "without a boundary the kernel side does not ask") {
  auto e = start(test::unconfined_plan());
  const auto refused = loop.run(e->listen(2));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == error_code::illegal_state);
  CHECK(e->alive());
}

TEST_CASE_FIXTURE(fixture, "sockets that are not what init says they are cost it its enclosure") {
  const auto before = test::take_footprint();
  for (const std::string how :
       {"listen-too-few", "listen-no-socket", "listen-not-listening", "listen-everywhere",
        "listen-other-port", "listen-claims-v6", "listen-v4-as-v6", "listen-started", "listen-dies"}) {
    CAPTURE(how);
    {
      auto e = start(test::misbehaving_plan(how));
      const auto listeners = loop.run(e->listen(2));
      REQUIRE_FALSE(listeners);
      loop.run(e->ended());
      CHECK_FALSE(e->alive());
      CHECK_FALSE(e->why_ended().empty());
    }
    loop.settle();
    CHECK(test::take_footprint() == before);
  }
}
