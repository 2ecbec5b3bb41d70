// CONNECT and SOCKS through a pair over real sockets: what is allowed arrives, what is not is refused, named
// and reported.
#include <doctest/doctest.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <thread>

#include "integration/running_pair.hpp"
#include "support/run_command.hpp"
#include "support/temporary_directory.hpp"

using namespace ccbox;
using namespace std::chrono_literals;
using test::running_pair;
using test::tcp_peer;

namespace {

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

void echo(tcp_peer& peer) {
  for (std::string got; !(got = peer.read_exactly(1)).empty();)
    peer.send(got);
}

std::string port_text(std::uint16_t port) {
  return ":" + std::to_string(port);
}

std::string socks5_request(const std::string& name, std::uint16_t port, char command = 1) {
  std::string out{5, command, 0, 3, static_cast<char>(name.size())};
  out += name;
  out += static_cast<char>(port >> 8);
  out += static_cast<char>(port & 0xff);
  return out;
}

std::string hello_with_name(const std::string& name) {
  const auto u16 = [](std::size_t n) {
    return std::string{static_cast<char>(n >> 8), static_cast<char>(n & 0xff)};
  };
  const auto entry = std::string(1, '\0') + u16(name.size()) + name;
  const auto list = u16(entry.size()) + entry;
  const auto extension = std::string(2, '\0') + u16(list.size()) + list;
  const auto body = std::string("\x03\x03", 2) + std::string(32, 'r') + std::string(1, '\0') +
                    std::string("\x00\x02\x13\x01\x01\x00", 6) + u16(extension.size()) + extension;
  const auto handshake = std::string("\x01\x00", 2) + u16(body.size()) + body;
  return std::string("\x16\x03\x01", 3) + u16(handshake.size()) + handshake;
}

// With the random that asks for another hello, or any.
std::string server_hello(const std::string& random) {
  return std::string("\x16\x03\x03\x00\x2a\x02\x00\x00\x26\x03\x03", 11) + random +
         std::string("\x00\x13\x01\x00", 4);
}

}  // namespace

TEST_CASE("CONNECT to an allowed name is a tunnel both ways") {
  test::tcp_origin origin(echo);
  running_pair pair(running_pair::allowing({"a.test" + port_text(origin.port())}));
  pair.dns().set("a.test", {{"127.0.0.1"}});
  auto client = pair.http();
  CHECK(has(running_pair::connect(client, "a.test" + port_text(origin.port())), "HTTP/1.1 200 "));
  client.send("through");
  CHECK(client.read_exactly(7) == "through");
}

TEST_CASE("both ports speak HTTP and SOCKS") {
  test::tcp_origin origin(echo);
  running_pair pair(running_pair::allowing({"a.test" + port_text(origin.port())}));
  pair.dns().set("a.test", {{"127.0.0.1"}});
  auto http = pair.socks();
  CHECK(has(running_pair::connect(http, "a.test" + port_text(origin.port())), " 200 "));
  auto socks = pair.http();
  socks.send({"\x05\x01\x00", 3});
  CHECK(socks.read_exactly(2) == std::string("\x05\x00", 2));
}

TEST_CASE("data sent together with CONNECT reaches the origin") {
  test::tcp_origin origin(echo);
  running_pair pair(running_pair::allowing({"a.test" + port_text(origin.port())}));
  pair.dns().set("a.test", {{"127.0.0.1"}});
  auto client = pair.http();
  client.send("CONNECT a.test" + port_text(origin.port()) + " HTTP/1.0\r\n\r\nearly");
  CHECK(has(client.read_until("\r\n\r\n"), " 200 "));
  CHECK(client.read_exactly(5) == "early");
}

TEST_CASE("a client that sends byte by byte is served as any other") {
  test::tcp_origin origin(echo);
  running_pair pair(running_pair::allowing({"a.test" + port_text(origin.port())}));
  pair.dns().set("a.test", {{"127.0.0.1"}});
  auto http = pair.http();
  http.send_byte_by_byte("CONNECT a.test" + port_text(origin.port()) + " HTTP/1.1\r\nHost: a.test\r\n\r\nx");
  CHECK(has(http.read_until("\r\n\r\n"), " 200 "));
  CHECK(http.read_exactly(1) == "x");
  auto socks = pair.socks();
  socks.send_byte_by_byte(std::string("\x05\x01\x00", 3) + socks5_request("a.test", origin.port()) + "y");
  CHECK(socks.read_exactly(12) == std::string("\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00", 12));
  CHECK(socks.read_exactly(1) == "y");
}

TEST_CASE("a half-close reaches the origin and the answer still comes back") {
  test::tcp_origin origin([](tcp_peer& peer) { peer.send("got " + peer.read_all()); });
  running_pair pair(running_pair::allowing({"a.test" + port_text(origin.port())}));
  pair.dns().set("a.test", {{"127.0.0.1"}});
  auto client = pair.http();
  running_pair::connect(client, "a.test" + port_text(origin.port()));
  client.send("all of it");
  client.half_close();
  CHECK(client.read_all() == "got all of it");
  CHECK_FALSE(client.was_reset());
}

TEST_CASE("bulk data arrives whole in both directions at once") {
  const std::string bulk(8 << 20, 'b');
  test::tcp_origin origin([&](tcp_peer& peer) {
    std::thread writer([&] { peer.send(bulk); });
    std::size_t got = 0;
    while (got < bulk.size()) {
      const auto part = peer.read_exactly(1 << 16);
      if (part.empty()) break;
      got += part.size();
    }
    writer.join();
    peer.send(got == bulk.size() ? "whole" : "part");
  });
  running_pair pair(running_pair::allowing({"a.test" + port_text(origin.port())}));
  pair.dns().set("a.test", {{"127.0.0.1"}});
  auto client = pair.http();
  running_pair::connect(client, "a.test" + port_text(origin.port()));
  std::thread writer([&] { client.send(bulk); });
  CHECK(client.read_exactly(bulk.size()) == bulk);
  writer.join();
  CHECK(client.read_exactly(5) == "whole");
}

TEST_CASE("an origin that speaks first is not held up by the SNI check") {
  test::tcp_origin origin([](tcp_peer& peer) {
    peer.send("SSH-2.0-test\r\n");
    peer.read_all();
  });
  running_pair pair(running_pair::allowing({"a.test" + port_text(origin.port())}));
  pair.dns().set("a.test", {{"127.0.0.1"}});
  auto client = pair.http();
  running_pair::connect(client, "a.test" + port_text(origin.port()));
  CHECK(client.read_until("\r\n") == "SSH-2.0-test\r\n");
}

TEST_CASE("TLS to another name than the tunnel's is refused before a byte of it is forwarded") {
  test::tcp_origin origin([](tcp_peer& peer) { CHECK(peer.read_all() == ""); });
  running_pair pair(running_pair::allowing({"a.test" + port_text(origin.port())}));
  pair.dns().set("a.test", {{"127.0.0.1"}});
  auto client = pair.http();
  running_pair::connect(client, "a.test" + port_text(origin.port()));
  client.send_byte_by_byte(hello_with_name("other.test"));
  CHECK(client.read_all() == std::string("\x15\x03\x03\x00\x02\x02\x70", 7));
  CHECK(has(pair.denials(1).at(0), R"("protocol":"sni","host":"a.test")"));
  CHECK(has(pair.denials(1).at(0), R"("reason":"sni-mismatch")"));
}

TEST_CASE("with `sni: log` TLS to another name passes, and is noted") {
  const auto hello = hello_with_name("other.test");
  test::tcp_origin origin([&](tcp_peer& peer) {
    CHECK(peer.read_exactly(hello.size()) == hello);
    peer.send("answer");
    peer.read_all();
  });
  auto setup = running_pair::allowing({"a.test" + port_text(origin.port())});
  setup.settings.sni = egress::sni_mode::log;
  const test::temporary_directory directory;
  setup.decision_log = directory / "decisions";
  running_pair pair(setup);
  pair.dns().set("a.test", {{"127.0.0.1"}});
  auto client = pair.http();
  running_pair::connect(client, "a.test" + port_text(origin.port()));
  client.send_byte_by_byte(hello);
  CHECK(client.read_exactly(6) == "answer");
  CHECK(pair.count().sni_notes == 1);
  CHECK(pair.denials(0).empty());
  pair.close();
  const auto log = test::read_file(setup.decision_log);
  CHECK_MESSAGE(has(log, R"("protocol":"sni")"), log);
  CHECK_MESSAGE(has(log, R"("reason":"sni-mismatch")"), log);
}

TEST_CASE("another name in the second hello that a TLS server asks for is refused") {
  const auto hello = hello_with_name("a.test");
  const auto retry = server_hello(
      "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91"
      "\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c");
  test::tcp_origin origin([&](tcp_peer& peer) {
    CHECK(peer.read_exactly(hello.size()) == hello);
    peer.send(retry);
    CHECK(peer.read_all() == "");
  });
  running_pair pair(running_pair::allowing({"a.test" + port_text(origin.port())}));
  pair.dns().set("a.test", {{"127.0.0.1"}});
  auto client = pair.http();
  running_pair::connect(client, "a.test" + port_text(origin.port()));
  client.send(hello);
  CHECK(client.read_exactly(retry.size()) == retry);
  client.send_byte_by_byte(hello_with_name("other.test"));
  CHECK(client.read_all() == std::string("\x15\x03\x03\x00\x02\x02\x70", 7));
  CHECK(has(pair.denials(1).at(0), R"("reason":"sni-mismatch")"));
}

TEST_CASE("after a TLS server's answer a tunnel carries whatever it is given, in bulk too") {
  const auto hello = hello_with_name("a.test");
  const auto answer = server_hello(std::string(32, 'r'));
  const std::string bulk(1 << 20, '\x16');
  test::tcp_origin origin([&](tcp_peer& peer) {
    CHECK(peer.read_exactly(hello.size()) == hello);
    peer.send(answer + bulk);
    CHECK(peer.read_exactly(bulk.size()) == bulk);
    peer.send("served");
  });
  running_pair pair(running_pair::allowing({"a.test" + port_text(origin.port())}));
  pair.dns().set("a.test", {{"127.0.0.1"}});
  auto client = pair.http();
  running_pair::connect(client, "a.test" + port_text(origin.port()));
  client.send(hello);
  CHECK(client.read_exactly(answer.size() + bulk.size()).ends_with(bulk));
  client.send(bulk);
  CHECK(client.read_exactly(6) == "served");
}

TEST_CASE("a warning in front of the hello hides no name") {
  test::tcp_origin origin([](tcp_peer& peer) { CHECK(peer.read_all() == ""); });
  running_pair pair(running_pair::allowing({"a.test" + port_text(origin.port())}));
  pair.dns().set("a.test", {{"127.0.0.1"}});
  auto client = pair.http();
  running_pair::connect(client, "a.test" + port_text(origin.port()));
  client.send(std::string("\x15\x03\x01\x00\x02\x01\x5a", 7) + hello_with_name("other.test"));
  CHECK(client.read_all() == std::string("\x15\x03\x03\x00\x02\x02\x70", 7));
  CHECK(has(pair.denials(1).at(0), R"("reason":"sni-mismatch")"));
}

TEST_CASE("TLS to the tunnel's own name passes, whatever its case") {
  const auto hello = hello_with_name("A.Test");
  test::tcp_origin origin([&](tcp_peer& peer) {
    if (peer.read_exactly(hello.size()) == hello) peer.send("served");
  });
  running_pair pair(running_pair::allowing({"a.test" + port_text(origin.port())}));
  pair.dns().set("a.test", {{"127.0.0.1"}});
  auto client = pair.http();
  running_pair::connect(client, "a.test" + port_text(origin.port()));
  client.send_byte_by_byte(hello);
  CHECK(client.read_exactly(6) == "served");
}

TEST_CASE("who was refused by SOCKS and asks by CONNECT for the explanation was refused once") {
  running_pair pair(running_pair::allowing({"a.test"}));
  const auto refused = [&] {
    double sum = 0;
    pair.count().read([&](std::string_view name, std::string_view, double value) {
      if (name == "ccbox_egress_denied_total") sum += value;
    });
    return sum;
  };
  auto socks = pair.socks();
  socks.send(std::string("\x05\x01\x00", 3) + socks5_request("b.test", 22));
  CHECK(socks.read_all().size() == 12);
  const auto ask = [&](const std::string& authority) {
    auto http = pair.http();
    return running_pair::connect(http, authority);
  };
  CHECK(refused() == 1);
  CHECK(ask("c.test:22").starts_with("HTTP/1.1 403"));
  CHECK(refused() == 2);
  CHECK(ask("b.test:22").starts_with("HTTP/1.1 403"));
  CHECK(refused() == 2);
  CHECK(ask("b.test:22").starts_with("HTTP/1.1 403"));
  CHECK(refused() == 3);
}

TEST_CASE("a denied name causes no DNS question, a 403 that says why, and a denial event") {
  running_pair pair(running_pair::allowing({"a.test"}));
  pair.dns().set("b.test", {{"127.0.0.1"}});
  auto client = pair.http();
  const auto head = running_pair::connect(client, "B.Test.:443");
  CHECK(has(head, "HTTP/1.1 403 Forbidden (ccbox: blocked-by-allowlist)\r\n"));
  CHECK(has(head, "X-Proxy-Error: blocked-by-allowlist\r\n"));
  CHECK(has(head, "Connection: close\r\n"));
  CHECK(has(client.read_until("\n"), "b.test"));
  CHECK(pair.dns().questions("b.test") == 0);
  CHECK(pair.denials(1).at(0) ==
        R"({"protocol":"connect","host":"b.test","port":443,"reason":"blocked-by-allowlist",)"
        R"("rule":"","origin":"","count":1})");
}

TEST_CASE("what follows a refused request is not read as a request") {
  test::http_origin origin;
  running_pair pair(running_pair::allowing({"a.test" + port_text(origin.port())}));
  pair.dns().set("a.test", {{"127.0.0.1"}});
  auto client = pair.http();
  client.send("CONNECT b.test:443 HTTP/1.1\r\nHost: b.test\r\n\r\nGET http://a.test" +
              port_text(origin.port()) + "/hello HTTP/1.1\r\nHost: a.test\r\n\r\n");
  const auto all = client.read_all();
  CHECK(has(all, " 403 "));
  CHECK_FALSE(has(all, "hello"));
  CHECK(origin.connections() == 0);
}

TEST_CASE("SOCKS refusals have exact replies") {
  running_pair pair(running_pair::allowing({"a.test", "gone.test", "shut.test:1"}));
  pair.dns().set("shut.test", {{"127.0.0.1"}});
  const auto reply_to = [&](const std::string& request) {
    auto client = pair.socks();
    client.send(std::string("\x05\x01\x00", 3) + request);
    CHECK(client.read_exactly(2) == std::string("\x05\x00", 2));
    return client.read_all();
  };
  const auto reply = [](char code) { return std::string{5, code, 0, 1, 0, 0, 0, 0, 0, 0}; };
  CHECK(reply_to(socks5_request("b.test", 443)) == reply(2));     // policy
  CHECK(reply_to(socks5_request("gone.test", 443)) == reply(4));  // no such name
  CHECK(reply_to(socks5_request("shut.test", 1)) == reply(5));    // refused
  CHECK(reply_to(socks5_request("a.test", 443, 2)) == reply(7));  // BIND
  CHECK(reply_to(socks5_request("a.test", 443, 3)) == reply(7));  // UDP ASSOCIATE
}

TEST_CASE("a NUL in a SOCKS name is refused, and the event shows it") {
  running_pair pair(running_pair::allowing({"*.allowed.test"}));
  auto client = pair.socks();
  client.send(std::string("\x05\x01\x00", 3) +
              socks5_request(std::string("evil.test\0.allowed.test", 23), 443));
  CHECK(client.read_all().size() == 12);
  CHECK(has(pair.denials(1).at(0), R"("host":"evil.test\\x00.allowed.test")"));
  CHECK(has(pair.denials(1).at(0), R"("reason":"malformed")"));
}

TEST_CASE("SOCKS4a reaches an allowed name and is refused another with code 91") {
  test::tcp_origin origin(echo);
  running_pair pair(running_pair::allowing({"a.test" + port_text(origin.port())}));
  pair.dns().set("a.test", {{"127.0.0.1"}});
  const auto request = [&](const std::string& name) {
    std::string out{
        4,   1, static_cast<char>(origin.port() >> 8), static_cast<char>(origin.port() & 0xff), 0, 0, 0, 1,
        'u', 0};
    return out + name + std::string(1, '\0');
  };
  auto good = pair.socks();
  good.send(request("a.test") + "x");
  CHECK(good.read_exactly(8).substr(0, 2) == std::string("\0\x5a", 2));
  CHECK(good.read_exactly(1) == "x");
  auto bad = pair.socks();
  bad.send(request("b.test"));
  CHECK(bad.read_all().substr(0, 2) == std::string("\0\x5b", 2));
}

TEST_CASE("a name that resolves to this host or to the metadata service is refused after the lookup") {
  auto setup = running_pair::allowing({"lo.test", "meta.test", "private.test"});
  setup.rules.pop_back();  // no resolved range
  running_pair pair(std::move(setup));
  pair.dns().set("lo.test", {{"127.0.0.9"}});
  pair.dns().set("meta.test", {{"169.254.169.254"}});
  pair.dns().set("private.test", {{"10.1.2.3", "::ffff:127.0.0.1"}});
  for (const std::string name : {"lo.test", "meta.test", "private.test"}) {
    CAPTURE(name);
    auto client = pair.http();
    const auto head = running_pair::connect(client, name + ":443");
    CHECK(has(head, " 403 "));
    CHECK(has(head, "X-Proxy-Error: resolved-address\r\n"));
    const auto body = client.read_all();
    CHECK_FALSE(has(body, "127.0.0.9"));
    CHECK_FALSE(has(body, "169.254"));
  }
}

TEST_CASE("of a mixed answer only the permitted address is dialled") {
  test::tcp_origin origin(echo);
  auto setup = running_pair::allowing({"mixed.test" + port_text(origin.port())});
  setup.rules.back().pattern = "127.0.0.1/32";
  running_pair pair(std::move(setup));
  pair.dns().set("mixed.test", {{"127.0.0.9", "127.0.0.1", "169.254.169.254"}});
  auto client = pair.http();
  CHECK(has(running_pair::connect(client, "mixed.test" + port_text(origin.port())), " 200 "));
}

TEST_CASE("a name that changes between decision and use cannot: one lookup, and its addresses are dialled") {
  test::tcp_origin origin(echo);
  auto setup = running_pair::allowing({"flip.test" + port_text(origin.port())});
  setup.rules.back().pattern = "127.0.0.1/32";
  running_pair pair(std::move(setup));
  pair.dns().set("flip.test", [](unsigned question) {
    test::dns_responder::answer a;
    a.addresses = {question == 0 ? "127.0.0.1" : "169.254.169.254"};
    a.ttl = 0;
    return a;
  });
  auto first = pair.http();
  CHECK(has(running_pair::connect(first, "flip.test" + port_text(origin.port())), " 200 "));
  CHECK(pair.dns().questions("flip.test") == 1);
  auto second = pair.http();
  CHECK(has(running_pair::connect(second, "flip.test" + port_text(origin.port())), " 403 "));
}

TEST_CASE("DNS errors dial nothing: no such name, failure, silence") {
  running_pair pair(running_pair::allowing({"none.test", "fail.test", "mute.test"}));
  test::dns_responder::answer fail, mute;
  fail.code = 2;
  mute.silent = true;
  pair.dns().set("fail.test", fail);
  pair.dns().set("mute.test", mute);
  const auto answer_to = [&](const std::string& name) {
    auto client = pair.http();
    return running_pair::connect(client, name + ":443");
  };
  const auto none = answer_to("none.test"), failed = answer_to("fail.test"), muted = answer_to("mute.test");
  CHECK(has(none, " 502 "));
  CHECK(has(none, "dns-no-such-name"));
  CHECK(has(failed, " 502 "));
  CHECK(has(failed, "dns-failure"));
  CHECK(has(muted, " 504 "));
  CHECK(has(muted, "dns-timeout"));
  // Each is reported, and none as a denial.
  CHECK(has(
      pair.unreachable(3).at(0),
      R"({"protocol":"connect","host":"none.test","port":443,"reason":"dns-no-such-name","rule":"none.test",)"));
  CHECK(has(pair.unreachable(3).at(1), R"("host":"fail.test","port":443,"reason":"dns-failure")"));
  CHECK(has(pair.unreachable(3).at(2), R"("host":"mute.test","port":443,"reason":"dns-timeout")"));
  CHECK(pair.denials(0).empty());
}

TEST_CASE("a storm of connections that are allowed and refused by the origin is counted, in every protocol") {
  running_pair pair(running_pair::allowing({"down.test:1"}));
  pair.dns().set("down.test", {{"127.0.0.1"}});
  for (int i = 0; i < 10; ++i) {
    auto client = pair.http();
    CHECK(has(running_pair::connect(client, "down.test:1"), "connection-refused"));
    auto other = pair.http();
    other.send("GET http://down.test:1/ HTTP/1.1\r\nHost: down.test:1\r\n\r\n");
    CHECK(has(other.read_until("\r\n\r\n"), "connection-refused"));
    auto third = pair.socks();
    third.send(std::string("\x05\x01\x00", 3) + socks5_request("down.test", 1));
    CHECK(third.read_exactly(4) == std::string("\x05\x00\x05\x05", 4));
  }
  pair.close();
  const auto events = pair.unreachable(2);
  CHECK(events.size() < 30);
  unsigned counted = 0;
  for (const auto& event : events)
    counted += static_cast<unsigned>(std::stoi(event.substr(event.find("\"count\":") + 8)));
  CHECK(counted == 30);
  CHECK(pair.denials(0).empty());
}

TEST_CASE("a truncated DNS answer is asked for again over TCP, and what it says there is dialled") {
  test::tcp_origin origin(echo);
  running_pair pair(running_pair::allowing({"long.test" + port_text(origin.port()), "cut.test:443"}));
  test::dns_responder::answer truncated{{"127.0.0.1"}};
  truncated.truncated = true;
  pair.dns().set("long.test", truncated);
  auto client = pair.http();
  CHECK(has(running_pair::connect(client, "long.test" + port_text(origin.port())), " 200 "));
  client.send("x");
  CHECK(client.read_exactly(1) == "x");
  CHECK(pair.dns().questions_over_tcp("long.test") == 1);
  // What does not come over TCP either is a failure, never the part that came.
  truncated.cut_over_tcp = true;
  pair.dns().set("cut.test", truncated);
  auto other = pair.http();
  CHECK(has(running_pair::connect(other, "cut.test:443"), "dns-failure"));
}

TEST_CASE("a forged DNS answer with another id is ignored") {
  test::tcp_origin origin(echo);
  running_pair pair(running_pair::allowing({"a.test" + port_text(origin.port())}));
  test::dns_responder::answer forged;
  forged.addresses = {"127.0.0.1"};
  forged.wrong_id_first = true;
  pair.dns().set("a.test", forged);
  auto client = pair.http();
  CHECK(has(running_pair::connect(client, "a.test" + port_text(origin.port())), " 200 "));
}

TEST_CASE("the pair's own ports are never dialled, not even if a rule names them") {
  const unique_fd http(egress::listener::listen_on_loopback()), socks(egress::listener::listen_on_loopback());
  sockaddr_in where = {};
  socklen_t size = sizeof where;
  REQUIRE(::getsockname(socks.get(), reinterpret_cast<sockaddr*>(&where), &size) == 0);
  const auto port = ntohs(where.sin_port);
  auto setup = running_pair::allowing({"self.test" + port_text(port), "127.0.0.1" + port_text(port)});
  setup.listeners = {{CCBOX_LISTENER_HTTP, http.get(), ""}, {CCBOX_LISTENER_SOCKS, socks.get(), ""}};
  running_pair pair(std::move(setup));
  pair.dns().set("self.test", {{"127.0.0.1"}});
  for (const std::string host : {"self.test", "127.0.0.1"}) {
    CAPTURE(host);
    auto client = pair.http();
    const auto head = running_pair::connect(client, host + port_text(port));
    CHECK(has(head, " 403 "));
    CHECK(has(head, "X-Proxy-Error: self\r\n"));
  }
}

TEST_CASE("a Unix socket is a listener as good as a TCP one") {
  test::tcp_origin origin(echo);
  const test::temporary_directory directory;
  sockaddr_un where = {};
  where.sun_family = AF_UNIX;
  const auto path = directory / "http";
  REQUIRE(path.size() < sizeof where.sun_path);
  path.copy(where.sun_path, path.size());
  const auto at = reinterpret_cast<const sockaddr*>(&where);
  const unique_fd http(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(http.get(), at, sizeof where) == 0);
  REQUIRE(::listen(http.get(), 8) == 0);
  const unique_fd socks(egress::listener::listen_on_loopback());
  const auto target = "a.test" + port_text(origin.port());
  auto setup = running_pair::allowing({target});
  setup.listeners = {{CCBOX_LISTENER_HTTP, http.get(), "127.0.0.1:3128"},
                     {CCBOX_LISTENER_SOCKS, socks.get(), ""}};
  running_pair pair(std::move(setup));
  pair.dns().set("a.test", {{"127.0.0.1"}});
  CHECK(pair.http_port() == 3128);
  const auto client_of_it = [&] {
    unique_fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(fd.get(), at, sizeof where) == 0);
    return tcp_peer(std::move(fd));
  };
  auto client = client_of_it();
  CHECK(has(running_pair::connect(client, target), " 200 "));
  client.send("hello");
  client.half_close();
  CHECK(client.read_all() == "hello");
  auto refused = client_of_it();
  CHECK(has(running_pair::connect(refused, "evil.test:443"), " 403 "));
  auto spoken = client_of_it();
  spoken.send(std::string("\x05\x01\x00", 3) + socks5_request("a.test", origin.port()));
  CHECK(spoken.read_exactly(4) == std::string("\x05\x00\x05\x00", 4));
  pair.close();
  unique_fd late(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::connect(late.get(), at, sizeof where) == 0);  // the caller's own descriptor still listens
  CHECK(tcp_peer(std::move(late)).is_quiet());
}

TEST_CASE("an address that no rule names is refused as an address, and loopback as well") {
  running_pair pair(running_pair::allowing({"a.test"}));
  for (const std::string host : {"192.0.2.1", "127.0.0.1", "2130706433", "[::1]", "0x7f.1"}) {
    CAPTURE(host);
    auto client = pair.http();
    CHECK(has(running_pair::connect(client, host + ":443"), "X-Proxy-Error: ip-literal\r\n"));
  }
}

TEST_CASE("an allow entry for a loopback address and port lifts the range rule for exactly that") {
  test::tcp_origin origin(echo);
  auto setup = running_pair::allowing({origin.authority()});
  setup.rules.pop_back();
  running_pair pair(std::move(setup));
  auto client = pair.http();
  CHECK(has(running_pair::connect(client, origin.authority()), " 200 "));
  auto other = pair.http();
  CHECK(has(running_pair::connect(other, "127.0.0.1:1"), " 403 "));
}

TEST_CASE("with a token, clients without it are refused on both protocols") {
  test::tcp_origin origin(echo);
  auto setup = running_pair::allowing({"a.test" + port_text(origin.port())});
  setup.with_token = true;
  running_pair pair(std::move(setup));
  pair.dns().set("a.test", {{"127.0.0.1"}});
  const auto authority = "a.test" + port_text(origin.port());
  auto without = pair.http();
  const auto refused = running_pair::connect(without, authority);
  CHECK(has(refused, "HTTP/1.1 407 "));
  CHECK(has(refused, "Proxy-Authenticate: Basic"));
  auto with = pair.http();
  with.send("CONNECT " + authority + " HTTP/1.1\r\nProxy-Authorization: " +
            egress::basic_authorization("ccbox:" + pair.token().hex()) + "\r\n\r\n");
  CHECK(has(with.read_until("\r\n\r\n"), " 200 "));
  auto socks = pair.socks();
  socks.send({"\x05\x01\x00", 3});
  CHECK(socks.read_all() == std::string("\x05\xff", 2));
  auto known = pair.socks();
  const auto& hex = pair.token().hex();
  known.send(std::string("\x05\x01\x02", 3) +
             "\x01\x05"
             "ccbox" +
             static_cast<char>(hex.size()) + hex + socks5_request("a.test", origin.port()));
  CHECK(known.read_exactly(4 + 10).substr(0, 6) == std::string("\x05\x02\x01\x00\x05\x00", 6));
}
