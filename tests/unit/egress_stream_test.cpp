#include "plugins/egress/stream.hpp"

#include <doctest/doctest.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <string>

#include "kernel/unique_fd.hpp"
#include "plugins/egress/listener.hpp"

using namespace ccbox;
using namespace ccbox::egress;

TEST_CASE("a peer that does not read leaves little in the sender's buffer") {
  const unique_fd listening(listener::listen_on_loopback());
  REQUIRE(listening.get() >= 0);
  set_stream_options(listening.get());
  sockaddr_in where = {};
  socklen_t size = sizeof where;
  REQUIRE(::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&where), &size) == 0);
  const unique_fd made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  set_stream_options(made.get());
  REQUIRE(::connect(made.get(), reinterpret_cast<const sockaddr*>(&where), size) == 0);
  const unique_fd accepted(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  REQUIRE(accepted.get() >= 0);

  const std::string bulk(64 * 1024, 'x');
  for (const int sender : {made.get(), accepted.get()}) {
    std::size_t sent = 0;
    for (std::ptrdiff_t n; (n = send_now(sender, bulk)) > 0;)
      sent += static_cast<std::size_t>(n);
    CHECK(sent >= bulk.size());
    int unsent = 0;
    REQUIRE(::ioctl(sender, SIOCOUTQNSD, &unsent) == 0);
    CHECK(static_cast<std::size_t>(unsent) <= most_unsent_bytes + bulk.size());
  }
}
