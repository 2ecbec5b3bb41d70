#include "plugins/egress/tunnel.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "support/egress_loop.hpp"
#include "support/tcp_peer.hpp"

using namespace ccbox;
using namespace ccbox::egress;
using namespace std::chrono_literals;

namespace {

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

// What has arrived, without waiting.
std::size_t drain(const test::tcp_peer& peer) {
  std::size_t got = 0;
  char bytes[65'536];
  for (ssize_t n; (n = ::recv(peer.fd(), bytes, sizeof bytes, MSG_DONTWAIT)) > 0;)
    got += static_cast<std::size_t>(n);
  return got;
}

// A tunnel between two socket pairs, whose far ends are the test's.
struct scene {
  explicit scene(std::string early_up = "", std::string early_down = "",
                 tunnel_limits limits = {10s, 10s, 10s}) {
    int client_pair[2], origin_pair[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, client_pair) == 0);
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, origin_pair) == 0);
    client.emplace(unique_fd(client_pair[0]));
    origin.emplace(unique_fd(origin_pair[0]));
    stream_socket near_client(loop.io().executor()), near_origin(loop.io().executor());
    REQUIRE(adopt(near_client, client_pair[1]));
    REQUIRE(adopt(near_origin, origin_pair[1]));
    tunnel::callbacks then;
    then.ended = [this](const tunnel_end& e) { end = e; };
    made = std::make_shared<tunnel>(loop.io(), tunnel::side{std::move(near_client), std::move(early_up)},
                                    tunnel::side{std::move(near_origin), std::move(early_down)}, limits,
                                    std::nullopt, std::move(then));
    made->start();
  }
  void run_to_the_end() {
    loop.run_until([&] { return end.has_value(); });
  }
  test::egress_loop loop;
  std::optional<test::tcp_peer> client, origin;
  std::shared_ptr<tunnel> made;
  std::optional<tunnel_end> end;
};

}  // namespace

TEST_CASE("early data of both sides is forwarded first") {
  scene s("up", "down");
  CHECK(s.origin->read_exactly(2) == "up");
  CHECK(s.client->read_exactly(4) == "down");
  s.client->send("more");
  s.loop.settle();
  CHECK(s.origin->read_exactly(4) == "more");
}

TEST_CASE("each direction ends by itself, and the tunnel when both have") {
  scene s;
  s.client->send("question");
  s.client->half_close();
  s.loop.settle();
  CHECK(s.origin->read_all() == "question");
  CHECK_FALSE(s.end);
  s.origin->send("answer");
  s.origin->close();
  s.run_to_the_end();
  CHECK(s.client->read_all() == "answer");
  CHECK(s.end->bytes_up == 8);
  CHECK(s.end->bytes_down == 6);
}

TEST_CASE("an idle tunnel holds no pipe, not even after bulk data") {
  scene s;
  const auto before = open_descriptors();
  const std::string bulk(100'000, 'b');
  REQUIRE(::send(s.client->fd(), bulk.data(), bulk.size(), MSG_DONTWAIT) ==
          static_cast<ssize_t>(bulk.size()));
  std::size_t got = 0;
  while (got < bulk.size()) {
    s.loop.settle();
    got += drain(*s.origin);
  }
  s.loop.settle();
  // One pipe may wait in the pool for the next; none belongs to the tunnel.
  CHECK(open_descriptors() <= before + 2);
  s.made->abort();
  s.made.reset();
  s.loop.settle();
  CHECK(open_descriptors() == before - 2);
}

TEST_CASE("a receiver that does not read stops the sender, and loses nothing") {
  scene s;
  const std::string bulk(4 << 20, 'x');
  std::size_t sent = 0, got = 0;
  const auto send_some = [&] {
    const auto n =
        ::send(s.client->fd(), bulk.data() + sent, bulk.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    sent += static_cast<std::size_t>(std::max<ssize_t>(n, 0));
    s.loop.settle();
    return n > 0;
  };
  while (send_some()) {
  }
  CHECK(sent < bulk.size());  // nobody reads: the sender is held up
  while (got < bulk.size()) {
    got += drain(*s.origin);
    send_some();
  }
  CHECK(sent == bulk.size());
}

TEST_CASE("a tunnel without data ends after its idle limit, and in any case after its life limit") {
  scene idle("", "", {20ms, 10s, 10s});
  idle.run_to_the_end();
  scene old("", "", {10s, 10s, 20ms});
  old.run_to_the_end();
  CHECK(old.client->ends(1s));
}

TEST_CASE("after the first FIN a tunnel without data ends after the shorter limit") {
  scene s("", "", {10s, 20ms, 10s});
  s.client->half_close();
  s.run_to_the_end();
  CHECK(s.end->took < 5s);
}

TEST_CASE("abort() closes both sides before it returns") {
  scene s;
  s.made->abort();
  CHECK(s.end.has_value());
  CHECK(s.client->ends(1s));
  CHECK(s.origin->ends(1s));
}

TEST_CASE("a tunnel itself is small: what is large is lent") {
  CHECK(sizeof(tunnel) <= 1024);
}
