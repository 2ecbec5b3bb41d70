#include "plugins/egress/own_listeners.hpp"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <utility>

#include "unique_fd.hpp"

using namespace ccbox::egress;

namespace {

struct listening {
  ccbox::unique_fd fd;
  std::uint16_t port = 0;

  explicit listening(const sockaddr_storage& where, socklen_t size)
      : fd(::socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_storage at = where;
    REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr*>(&at), size) == 0);
    REQUIRE(::listen(fd.get(), 1) == 0);
    REQUIRE(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &size) == 0);
    if (at.ss_family == AF_INET) port = ntohs(reinterpret_cast<sockaddr_in&>(at).sin_port);
    if (at.ss_family == AF_INET6) port = ntohs(reinterpret_cast<sockaddr_in6&>(at).sin6_port);
  }
  static listening on_v4(std::uint32_t address) {
    sockaddr_storage where = {};
    auto& v4 = reinterpret_cast<sockaddr_in&>(where);
    v4.sin_family = AF_INET;
    v4.sin_addr.s_addr = htonl(address);
    return listening(where, sizeof v4);
  }
  static listening on_v6(const in6_addr& address) {
    sockaddr_storage where = {};
    auto& v6 = reinterpret_cast<sockaddr_in6&>(where);
    v6.sin6_family = AF_INET6;
    v6.sin6_addr = address;
    return listening(where, sizeof v6);
  }
};

bool contains(const own_listeners& all, std::string_view address, std::uint16_t port) {
  return all.contains(*parse_ip_address(address), port);
}

}  // namespace

TEST_CASE("a listener is one of ours at its address and port while its entry lives") {
  own_listeners all;
  const auto socket = listening::on_v4(INADDR_LOOPBACK);
  {
    const own_listeners::entry entry(all, socket.fd.get());
    CHECK(contains(all, "127.0.0.1", socket.port));
    CHECK(contains(all, "::ffff:127.0.0.1", socket.port));
    CHECK_FALSE(contains(all, "127.0.0.1", static_cast<std::uint16_t>(socket.port ^ 1)));
    CHECK_FALSE(contains(all, "127.0.0.2", socket.port));
    CHECK_FALSE(contains(all, "::1", socket.port));
  }
  CHECK_FALSE(contains(all, "127.0.0.1", socket.port));
}

TEST_CASE("the unspecified addresses lead to this host, and so to its listeners") {
  own_listeners all;
  const auto v4 = listening::on_v4(INADDR_LOOPBACK), v6 = listening::on_v6(in6addr_loopback);
  const own_listeners::entry one(all, v4.fd.get()), two(all, v6.fd.get());
  CHECK(contains(all, "0.0.0.0", v4.port));
  CHECK(contains(all, "0.1.2.3", v4.port));
  CHECK(contains(all, "::", v6.port));
  CHECK(contains(all, "::1", v6.port));
  if (v4.port != v6.port) {
    CHECK_FALSE(contains(all, "::", v4.port));
    CHECK_FALSE(contains(all, "0.0.0.0", v6.port));
  }
}

TEST_CASE("a listener on every address is reached by each") {
  own_listeners all;
  const auto v4 = listening::on_v4(INADDR_ANY), v6 = listening::on_v6(in6addr_any);
  const own_listeners::entry one(all, v4.fd.get()), two(all, v6.fd.get());
  for (const std::string_view address : {"127.0.0.1", "192.0.2.1", "0.0.0.0"})
    CHECK_MESSAGE(contains(all, address, v4.port), std::string(address));
  for (const std::string_view address : {"::1", "2001:db8::1", "127.0.0.1"})
    CHECK_MESSAGE(contains(all, address, v6.port), std::string(address));
}

TEST_CASE("an entry that is moved is one entry") {
  own_listeners all;
  const auto socket = listening::on_v4(INADDR_LOOPBACK);
  own_listeners::entry first(all, socket.fd.get());
  {
    own_listeners::entry second(std::move(first));
    CHECK(contains(all, "127.0.0.1", socket.port));
    own_listeners::entry third;
    third = std::move(second);
    CHECK(contains(all, "127.0.0.1", socket.port));
  }
  CHECK_FALSE(contains(all, "127.0.0.1", socket.port));
}

TEST_CASE("of two entries for one address each counts") {
  own_listeners all;
  const auto socket = listening::on_v4(INADDR_LOOPBACK);
  const own_listeners::entry stays(all, socket.fd.get());
  { const own_listeners::entry goes(all, socket.fd.get()); }
  CHECK(contains(all, "127.0.0.1", socket.port));
}

TEST_CASE("what has no port is nowhere") {
  own_listeners all;
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const ccbox::unique_fd one(ends[0]), two(ends[1]);
  const own_listeners::entry unix_socket(all, one.get()), none(all, -1);
  CHECK_FALSE(contains(all, "127.0.0.1", 0));
  CHECK_FALSE(contains(all, "::", 0));
}
