#include "plugins/egress/dialler.hpp"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>

#include "support/egress_loop.hpp"
#include "support/tcp_origin.hpp"

using namespace ccbox;
using namespace ccbox::egress;
using namespace std::chrono_literals;
using kind = dial_failure::kind;

namespace {

class fixed_resolver : public resolver {
 public:
  std::unique_ptr<lookup> resolve(egress::asio::io_context& context, const std::string&,
                                  answer done) override {
    ++asked;
    egress::asio::post(context, [this, done] { done(result); });
    return std::make_unique<lookup>();
  }
  lookup_result result{lookup_result::status::found, {}, 60s};
  int asked = 0;
};

destination name(const std::string& host, std::uint16_t port) {
  return std::get<destination>(parse_host(host, port));
}

struct scene {
  explicit scene(std::vector<rule> rules, session_settings s = {})
      : policy(std::get<0>(egress_policy::build(std::move(rules)))),
        settings(std::move(s)),
        cache(loop.io(), names, 1000ms, 4, count) {}
  template <class Dialler = direct_dialler>
  dial_outcome dial(const destination& to) {
    Dialler d(loop.io(), *policy, own, cache, settings);
    return loop.run(d.dial(to, scope));
  }
  kind failure(const destination& to) {
    auto outcome = dial(to);
    REQUIRE(std::holds_alternative<dial_failure>(outcome));
    last = std::get<dial_failure>(outcome);
    return last.what;
  }
  test::egress_loop loop;
  fixed_resolver names;
  counters count;
  own_listeners own;
  std::shared_ptr<const egress_policy> policy;
  session_settings settings;
  name_cache cache;
  std::shared_ptr<dial_scope> scope = std::make_shared<dial_scope>();
  dial_failure last;
};

rule allow(const std::string& pattern) {
  return {rule_action::allow, pattern, "t", "", false};
}
rule resolved(const std::string& range) {
  return {rule_action::resolved, range, "t", "", false};
}

void keep_open(test::tcp_peer& peer) {
  peer.read_all();
}

}  // namespace

TEST_CASE("the survivors of an answer are dialled, and nothing else") {
  test::tcp_origin origin(keep_open);
  scene s({allow("a.test:" + std::to_string(origin.port())), resolved("127.0.0.1/32")});
  s.names.result.addresses = {*parse_ip_address("169.254.169.254"), *parse_ip_address("10.0.0.1"),
                              *parse_ip_address("127.0.0.1")};
  const auto outcome = s.dial(name("a.test", origin.port()));
  CHECK(std::holds_alternative<dialled>(outcome));
}

TEST_CASE("an answer without a survivor is refused with the rule's reason") {
  scene s({allow("a.test")});
  for (const std::string address :
       {"127.0.0.1", "169.254.169.254", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "::"}) {
    CAPTURE(address);
    s.names.result.addresses = {*parse_ip_address(address)};
    scene fresh({allow("a.test")});
    fresh.names.result = s.names.result;
    CHECK(fresh.failure(name("a.test", 443)) == kind::refused_by_policy);
    CHECK(fresh.last.by.reason == denial_reason::resolved_address);
    CHECK(fresh.last.http_status() == 403);
    CHECK(fresh.last.reply() == socks_reply::not_allowed);
  }
}

TEST_CASE("a resolver that fails means that nothing is dialled") {
  using status = lookup_result::status;
  for (const auto& [what, expected] :
       {std::pair(status::no_such_name, kind::no_such_name), std::pair(status::failed, kind::lookup_failed),
        std::pair(status::timed_out, kind::lookup_timed_out)}) {
    scene s({allow("a.test")});
    s.names.result = {what, {*parse_ip_address("192.0.2.1")}, 60s};
    CHECK(s.failure(name("a.test", 443)) == expected);
  }
}

TEST_CASE("our own listeners are not dialled, under any spelling of this host") {
  const unique_fd listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in where = {};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof where;
  REQUIRE(::bind(listening.get(), reinterpret_cast<sockaddr*>(&where), size) == 0);
  REQUIRE(::listen(listening.get(), 1) == 0);
  REQUIRE(::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&where), &size) == 0);
  const auto port = ntohs(where.sin_port);
  for (const std::string host : {"127.0.0.1", "0.0.0.0"}) {
    CAPTURE(host);
    scene s({allow(host + ":" + std::to_string(port))});
    {
      const own_listeners::entry ours(s.own, listening.get());
      CHECK(s.failure(name(host, port)) == kind::refused_by_policy);
      CHECK(s.last.by.reason == denial_reason::self);
    }
    CHECK(std::holds_alternative<dialled>(s.dial(name(host, port))));  // not ours any more
  }
}

TEST_CASE("a port where nobody listens is refused, and no address means no descriptor") {
  scene s({allow("127.0.0.1:1")});
  CHECK(s.failure(name("127.0.0.1", 1)) == kind::connection_refused);
  CHECK(s.last.http_status() == 502);
  CHECK(s.last.reply() == socks_reply::connection_refused);
}

TEST_CASE("a dead address costs one delay, not the connection") {
  test::tcp_origin origin(keep_open);
  session_settings settings;
  settings.attempt_delay = 20ms;
  scene s({allow("a.test:" + std::to_string(origin.port())), resolved("127.0.0.0/8")}, settings);
  // Nobody listens on the first: it fails at once, and the next is tried at once.
  s.names.result.addresses = {*parse_ip_address("127.0.0.2"), *parse_ip_address("127.0.0.1")};
  CHECK(std::holds_alternative<dialled>(s.dial(name("a.test", origin.port()))));
}

TEST_CASE("a dial that is called off says so") {
  scene s({allow("a.test")});
  s.scope->cancel();
  s.names.result.addresses = {*parse_ip_address("192.0.2.1")};
  CHECK(s.failure(name("a.test", 443)) == kind::cancelled);
}

TEST_CASE("an upstream proxy is given the name, with credentials, and its early bytes are kept") {
  std::string request;
  test::tcp_origin parent([&](test::tcp_peer& peer) {
    request = peer.read_until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nX: y\r\n\r\nearly");
    peer.read_all();
  });
  session_settings settings;
  settings.upstream = upstream_proxy{name("127.0.0.1", parent.port()), basic_authorization("u:p")};
  scene s({allow("a.test")}, settings);
  auto outcome = s.dial<upstream_dialler>(name("a.test", 443));
  REQUIRE(std::holds_alternative<dialled>(outcome));
  CHECK(std::get<dialled>(outcome).early == "early");
  CHECK(request ==
        "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\nProxy-Authorization: Basic dTpw\r\n\r\n");
  CHECK(s.names.asked == 0);
}

TEST_CASE("an upstream proxy that refuses, or is none, is named as the cause") {
  for (const auto& [answer, expected] :
       {std::pair(std::string("HTTP/1.1 407 Who\r\n\r\n"), kind::upstream_refused),
        std::pair(std::string("SSH-2.0-x\r\n\r\n"), kind::upstream_failed),
        std::pair(std::string(40'000, 'x'), kind::upstream_failed),
        std::pair(std::string(), kind::upstream_failed)}) {
    test::tcp_origin parent([text = answer](test::tcp_peer& peer) {
      peer.read_until("\r\n\r\n");
      peer.send(text);
    });
    session_settings settings;
    settings.upstream = upstream_proxy{name("127.0.0.1", parent.port()), ""};
    scene s({allow("a.test")}, settings);
    auto outcome = s.dial<upstream_dialler>(name("a.test", 443));
    REQUIRE(std::holds_alternative<dial_failure>(outcome));
    CHECK(std::get<dial_failure>(outcome).what == expected);
  }
}

TEST_CASE("through an upstream proxy, addresses are still checked") {
  session_settings settings;
  settings.upstream = upstream_proxy{name("127.0.0.1", 1), ""};
  scene s({allow("169.254.169.254")}, settings);
  auto outcome = s.dial<upstream_dialler>(name("169.254.169.254", 80));
  REQUIRE(std::holds_alternative<dial_failure>(outcome));
  CHECK(std::get<dial_failure>(outcome).what == kind::refused_by_policy);
}
