#include "plugins/egress/origin_pool.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include "support/egress_loop.hpp"
#include "support/tcp_peer.hpp"

using namespace ccbox;
using namespace ccbox::egress;
using namespace std::chrono_literals;

namespace {

destination to(const std::string& host, std::uint16_t port = 80) {
  return std::get<destination>(parse_host(host, port));
}

struct scene {
  explicit scene(std::size_t most = 2, std::chrono::milliseconds keep = 10s)
      : pool(loop.io().deadlines(), most, keep) {}
  // The far end of a connection that is put into the pool.
  test::tcp_peer put(const destination& where) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    stream_socket near(loop.io().executor());
    REQUIRE(adopt(near, ends[1]));
    pool.put(where, std::move(near));
    return test::tcp_peer(unique_fd(ends[0]));
  }
  test::egress_loop loop;
  origin_pool pool;
};

}  // namespace

TEST_CASE("a connection is given out once, for exactly its host and port") {
  scene s;
  const auto peer = s.put(to("a.test"));
  CHECK_FALSE(s.pool.take(to("a.test", 81)));
  CHECK_FALSE(s.pool.take(to("b.test")));
  CHECK(s.pool.take(to("a.test")));
  CHECK_FALSE(s.pool.take(to("a.test")));
}

TEST_CASE("one that has ended or says something unasked is not used") {
  scene s;
  auto ended = s.put(to("a.test"));
  auto talks = s.put(to("a.test"));
  ended.close();
  talks.send("HTTP/1.1 200 OK\r\n");
  CHECK_FALSE(s.pool.take(to("a.test")));
}

TEST_CASE("the pool is bounded: the one that waits longest goes") {
  scene s(2);
  auto first = s.put(to("a.test"));
  auto second = s.put(to("b.test"));
  auto third = s.put(to("c.test"));
  CHECK(first.ends(1s));
  CHECK(s.pool.take(to("b.test")));
  CHECK(s.pool.take(to("c.test")));
}

TEST_CASE("one that waits too long is closed") {
  scene s(2, 10ms);
  auto peer = s.put(to("a.test"));
  s.loop.run_until([&] { return !peer.is_quiet(); });
  CHECK(peer.ends(1s));
}
