// What a session may use, and what is left of it afterwards: nothing.
#include <doctest/doctest.h>
#include <malloc.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <filesystem>
#include <future>

#include "integration/running_pair.hpp"

using namespace ccbox;
using namespace std::chrono_literals;
using test::running_pair;
using test::tcp_peer;

namespace {

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

// An origin that says nothing and keeps what it gets, a name for it, a pair that allows it.
struct scene {
  explicit scene(egress::session_settings settings = running_pair::quick())
      : origin([](tcp_peer& peer) { peer.read_all(); }), pair(make(settings)) {
    pair.dns().set("a.test", {{"127.0.0.1"}});
  }
  running_pair::setup make(const egress::session_settings& settings) {
    auto out = running_pair::allowing({authority()});
    out.settings = settings;
    return out;
  }
  std::string authority() const { return "a.test:" + std::to_string(origin.port()); }
  tcp_peer tunnel() {
    auto client = pair.http();
    CHECK(has(running_pair::connect(client, authority()), " 200 "));
    return client;
  }
  test::tcp_origin origin;
  running_pair pair;
};

}  // namespace

namespace {

constexpr std::size_t flood_bytes = std::size_t{64} << 20;

void set_buffer(int fd, int which) {
  const int bytes = 64 * 1024;
  REQUIRE(::setsockopt(fd, SOL_SOCKET, which, &bytes, sizeof bytes) == 0);
}

// Sends until half a second brings no room for more.
std::size_t flood(tcp_peer& peer) {
  set_buffer(peer.fd(), SO_SNDBUF);
  const timeval patience = {0, 500'000};
  ::setsockopt(peer.fd(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const std::string bytes(64 * 1024, 'x');
  std::size_t sent = 0;
  for (ssize_t n = 0; (n = ::send(peer.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL)) > 0;)
    sent += static_cast<std::size_t>(n);
  return sent;
}

// Fast for so long that the system would let buffers grow, and then not at all.
void read_and_stop(tcp_peer& peer) {
  set_buffer(peer.fd(), SO_RCVBUF);
  std::string bytes(256 * 1024, ' ');
  for (std::size_t got = 0; got < flood_bytes;) {
    const auto n = ::recv(peer.fd(), bytes.data(), bytes.size(), 0);
    REQUIRE(n > 0);
    got += static_cast<std::size_t>(n);
  }
}

// What is between two ends that each keep 64 KiB or twice that: received and not taken, in the pipe, unsent,
// with the system's allowance of the same again.
constexpr std::size_t most_between =
    2 * (egress::most_unread_bytes + egress::pipe_pool::capacity_bytes + egress::most_unsent_bytes);

}  // namespace

TEST_CASE("a client that stops to read stops its origin, after no more than a fixed number of bytes") {
  auto settings = running_pair::quick();
  settings.roomy_connections = 0;
  std::promise<std::size_t> sent;
  test::tcp_origin origin([&](tcp_peer& peer) {
    sent.set_value(flood(peer));
    peer.read_all();
  });
  auto setup = running_pair::allowing({"a.test:" + std::to_string(origin.port())});
  setup.settings = settings;
  running_pair pair(std::move(setup));
  pair.dns().set("a.test", {{"127.0.0.1"}});
  auto client = pair.http();
  REQUIRE(has(running_pair::connect(client, "a.test:" + std::to_string(origin.port())), " 200 "));
  read_and_stop(client);
  const auto total = sent.get_future().get();
  REQUIRE(total >= flood_bytes);
  MESSAGE("between: " << (total - flood_bytes));
  CHECK(total - flood_bytes <= most_between);
}

TEST_CASE("an origin that stops to read stops the client, after no more than a fixed number of bytes") {
  test::tcp_origin origin([](tcp_peer& peer) {
    read_and_stop(peer);
    pollfd end = {peer.fd(), POLLRDHUP, 0};
    ::poll(&end, 1, 10'000);
  });
  auto setup = running_pair::allowing({"a.test:" + std::to_string(origin.port())});
  running_pair pair(std::move(setup));
  pair.dns().set("a.test", {{"127.0.0.1"}});
  auto client = pair.http();
  REQUIRE(has(running_pair::connect(client, "a.test:" + std::to_string(origin.port())), " 200 "));
  const auto total = flood(client);
  REQUIRE(total >= flood_bytes);
  MESSAGE("between: " << (total - flood_bytes));
  CHECK(total - flood_bytes <= most_between);
}

TEST_CASE("a head that does not arrive in time is a 408") {
  auto settings = running_pair::quick();
  settings.head_timeout = 100ms;
  scene s(settings);
  auto client = s.pair.http();
  client.send("CONNECT a.te");
  CHECK(has(client.read_all(), "HTTP/1.1 408 "));
}

TEST_CASE("a client that says nothing is let go") {
  auto settings = running_pair::quick();
  settings.head_timeout = 100ms;
  scene s(settings);
  auto client = s.pair.http();
  CHECK(client.ends());
}

TEST_CASE("over max_tunnels a client is told to come back later, and one that ends makes room") {
  auto settings = running_pair::quick();
  settings.max_tunnels = 2;
  scene s(settings);
  auto first = s.tunnel();
  auto second = s.tunnel();
  auto third = s.pair.http();
  const auto head = running_pair::connect(third, s.authority());
  CHECK(has(head, "HTTP/1.1 429 "));
  CHECK(has(head, "X-Proxy-Error: limit\r\n"));
  CHECK(has(head, "Retry-After: "));
  first.reset();
  CHECK(s.pair.wait_for([&] { return s.pair.count().tunnels == 1; }));
  auto fourth = s.tunnel();
}

TEST_CASE("over max_pending clients wait their turn and are served") {
  auto settings = running_pair::quick();
  settings.max_pending = 2;
  settings.head_timeout = 200ms;
  scene s(settings);
  auto one = s.pair.http();
  auto two = s.pair.http();
  auto served = s.tunnel();  // waits until the silent ones are let go
  CHECK(one.ends());
  CHECK(two.ends());
}

TEST_CASE("an idle tunnel ends after the idle limit") {
  auto settings = running_pair::quick();
  settings.idle_timeout = 100ms;
  scene s(settings);
  auto client = s.tunnel();
  CHECK(client.ends());
}

TEST_CASE("a tunnel ends after its life limit, however busy") {
  auto settings = running_pair::quick();
  settings.life_limit = 150ms;
  test::tcp_origin origin([](tcp_peer& peer) {
    while (peer.send("more")) {
    }
  });
  auto setup = running_pair::allowing({"a.test:" + std::to_string(origin.port())});
  setup.settings = settings;
  running_pair pair(std::move(setup));
  pair.dns().set("a.test", {{"127.0.0.1"}});
  auto client = pair.http();
  running_pair::connect(client, "a.test:" + std::to_string(origin.port()));
  while (!client.read_exactly(1 << 16).empty()) {
  }
  CHECK(pair.wait_for([&] { return pair.count().tunnels == 0; }));
}

TEST_CASE("a half-closed tunnel without data is reaped") {
  auto settings = running_pair::quick();
  settings.half_closed_timeout = 100ms;
  std::promise<void> over;
  const auto is_over = over.get_future().share();
  test::tcp_origin origin([&](tcp_peer& peer) {
    peer.read_all();
    is_over.wait_for(10s);  // keeps its own direction open
  });
  auto setup = running_pair::allowing({"a.test:" + std::to_string(origin.port())});
  setup.settings = settings;
  running_pair pair(std::move(setup));
  pair.dns().set("a.test", {{"127.0.0.1"}});
  auto client = pair.http();
  running_pair::connect(client, "a.test:" + std::to_string(origin.port()));
  client.half_close();
  CHECK(client.ends());
  over.set_value();
  CHECK(pair.wait_for([&] { return pair.count().tunnels == 0; }));
}

TEST_CASE("a client that goes away while its name is looked up or dialled leaves nothing") {
  auto settings = running_pair::quick();
  settings.resolve_timeout = 20'000ms;
  auto setup = running_pair::allowing({"mute.test"});
  setup.settings = settings;
  running_pair pair(std::move(setup));
  test::dns_responder::answer mute;
  mute.silent = true;
  pair.dns().set("mute.test", mute);
  const auto before = open_descriptors();
  for (const bool orderly : {true, false}) {
    auto client = pair.http();
    client.send("CONNECT mute.test:443 HTTP/1.1\r\n\r\n");
    CHECK(pair.wait_for([&] { return pair.dns().questions("mute.test") > 0; }));
    orderly ? client.close() : client.reset();
  }
  // The pair's own end is closed as well; the two questions' sockets last as long as the lookup.
  CHECK(pair.wait_for([&] { return open_descriptors() <= before + 2; }));
  pair.close();
  CHECK(pair.wait_for([&] { return open_descriptors() < before; }));
}

TEST_CASE("close() ends tunnels, requests, lookups and half-read heads at once") {
  const auto before = open_descriptors();
  {
    scene s;
    test::dns_responder::answer mute;
    mute.silent = true;
    s.pair.dns().set("a2.test", mute);
    std::vector<tcp_peer> clients;
    for (int i = 0; i < 20; ++i)
      clients.push_back(s.tunnel());
    clients.push_back(s.pair.http());
    clients.back().send("CONNECT a.te");
    clients.push_back(s.pair.socks());
    clients.back().send("\x05");
    const auto mine = clients.size();
    const auto open = open_descriptors();
    const auto started = std::chrono::steady_clock::now();
    s.pair.close();
    // Two sockets a tunnel, one each for the others, and two listeners; a sanitizer is allowed its slowness.
    CHECK(s.pair.wait_for([&] { return open_descriptors() <= open - 20 * 2 - 2 - 2 + mine; }));
    CHECK(std::chrono::steady_clock::now() - started < 1s);
    for (auto& client : clients)
      CHECK(client.ends());
    CHECK(s.pair.http().fd() == -1);  // nobody listens
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("close() may come twice, and the second ends nothing of anybody else") {
  scene s;
  s.pair.close();
  scene other;  // takes the numbers of the descriptors that the first has closed
  auto client = other.tunnel();
  s.pair.close();
  CHECK(s.pair.http().fd() == -1);
  CHECK(other.pair.http().fd() != -1);
  CHECK(client.is_quiet());
}

TEST_CASE("a process out of descriptors pauses accepting and goes on when there are some") {
  scene s;
  rlimit old = {};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &old) == 0);
  auto client = s.pair.http();  // the test's own descriptor is there already
  CHECK(s.pair.wait_for([&] { return s.pair.count().accepted >= 1; }));
  auto waiting = s.pair.http();
  CHECK(s.pair.wait_for([&] { return s.pair.count().accepted >= 2; }));
  std::vector<unique_fd> hoard;
  unique_fd spare(::dup(0));
  auto third = unique_fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const rlimit tight = {open_descriptors() + 64, old.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &tight) == 0);
  for (int fd; (fd = ::dup(0)) >= 0;)
    hoard.emplace_back(fd);
  third.reset();
  auto blocked = s.pair.http();  // takes the last one; the pair finds none
  const bool paused = s.pair.wait_for([&] { return s.pair.count().accept_pauses >= 1; });
  hoard.clear();
  ::setrlimit(RLIMIT_NOFILE, &old);
  CHECK(paused);
  CHECK(has(running_pair::connect(blocked, s.authority()), " 200 "));
}

TEST_CASE("storms of denials are counted, not repeated") {
  scene s;
  for (int i = 0; i < 30; ++i) {
    auto client = s.pair.http();
    CHECK(has(running_pair::connect(client, "b.test:443"), " 403 "));
  }
  CHECK(s.pair.denials(2).size() < 15);
  std::size_t total = 0;
  CHECK(s.pair.wait_for([&] { return true; }));
  s.pair.close();
  for (const auto& json : s.pair.denials(2))
    total += std::stoul(json.substr(json.find("\"count\":") + 8));
  CHECK(total == 30);
}

TEST_CASE("a broken origin resets the client, and the other way round") {
  test::tcp_origin origin([](tcp_peer& peer) {
    peer.read_exactly(1);
    peer.reset();
  });
  running_pair pair(running_pair::allowing({"a.test:" + std::to_string(origin.port())}));
  pair.dns().set("a.test", {{"127.0.0.1"}});
  auto client = pair.http();
  running_pair::connect(client, "a.test:" + std::to_string(origin.port()));
  client.send("x");
  client.read_all();
  CHECK(client.was_reset());
}

TEST_CASE("an idle tunnel holds no more than 4 KiB") {
  scene s;
  std::vector<tcp_peer> clients;
  const auto hold = [&](std::size_t count) {
    while (clients.size() < count)
      clients.push_back(s.tunnel());
    CHECK(s.pair.wait_for([&] { return s.pair.count().tunnels == count; }));
    return ::mallinfo2().uordblks;
  };
  const auto before = hold(8);
  CHECK((hold(72) - before) / 64 <= 4096);
}
