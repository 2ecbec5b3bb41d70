// Requests in absolute form through a pair: written anew, kept alive, framed strictly, decided one by one.
#include <doctest/doctest.h>

#include "integration/running_pair.hpp"

using namespace ccbox;
using namespace std::chrono_literals;
using test::running_pair;
using test::tcp_peer;

namespace {

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

// An origin, a name for it, and a pair that allows it.
struct scene {
  explicit scene(egress::session_settings settings = running_pair::quick()) : pair(make(settings)) {
    pair.dns().set("a.test", {{"127.0.0.1"}});
  }
  running_pair::setup make(const egress::session_settings& settings) {
    auto out = running_pair::allowing({authority()});
    out.settings = settings;
    return out;
  }
  std::string authority() const { return "a.test:" + std::to_string(origin.port()); }
  std::string get(const std::string& path, const std::string& fields = "") const {
    return "GET http://" + authority() + path + " HTTP/1.1\r\nHost: a.test\r\n" + fields + "\r\n";
  }
  test::http_origin origin;
  running_pair pair;
};

std::string read_sized(tcp_peer& client) {
  const auto head = client.read_until("\r\n\r\n");
  const auto at = head.find("Content-Length: ");
  if (at == head.npos) return head;
  return head + client.read_exactly(std::stoul(head.substr(at + 16)));
}

}  // namespace

TEST_CASE("requests on one client connection share one connection to the origin") {
  scene s;
  auto client = s.pair.http();
  for (int i = 0; i < 5; ++i) {
    client.send(s.get("/hello"));
    const auto answer = read_sized(client);
    CHECK(has(answer, "HTTP/1.1 200 OK\r\n"));
    CHECK(has(answer, "\r\n\r\nhello"));
  }
  CHECK(s.origin.connections() == 1);
  CHECK(s.pair.count().origin_reuses == 4);
}

TEST_CASE("a second client reuses the session's connection to the origin") {
  scene s;
  for (int i = 0; i < 2; ++i) {
    auto client = s.pair.http();
    client.send(s.get("/hello", "Connection: close\r\n"));
    CHECK(has(client.read_all(), "hello"));
  }
  CHECK(s.origin.connections() == 1);
}

TEST_CASE(
    "the origin sees a rewritten request: its own Host, no proxy fields, nothing that Connection names") {
  scene s;
  auto client = s.pair.http();
  client.send("GET http://A.TEST.:" + std::to_string(s.origin.port()) +
              "/hello?q=1 HTTP/1.1\r\nHost: evil.test\r\nProxy-Connection: keep-alive\r\n"
              "Proxy-Authorization: Basic eDp5\r\nConnection: X-Gone\r\nX-Gone: 1\r\nX-Kept: 2\r\n\r\n");
  read_sized(client);
  auto second = s.pair.http();
  second.send(s.get("/hello"));
  read_sized(second);
  const auto head = s.origin.heads().at(0);
  CHECK(has(head, "GET /hello?q=1 HTTP/1.1\r\n"));
  CHECK(has(head, "Host: " + s.authority() + "\r\n"));
  CHECK(has(head, "X-Kept: 2\r\n"));
  CHECK_FALSE(has(head, "evil.test"));
  CHECK_FALSE(has(head, "Proxy-"));
  CHECK_FALSE(has(head, "X-Gone"));
}

TEST_CASE("each request on a kept connection is decided anew") {
  scene s;
  auto client = s.pair.http();
  client.send(s.get("/hello"));
  read_sized(client);
  client.send("GET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n");
  CHECK(has(client.read_all(), "HTTP/1.1 403 "));
}

TEST_CASE("pipelined requests are answered in order") {
  scene s;
  auto client = s.pair.http();
  client.send(s.get("/hello") + s.get("/chunked") + s.get("/hello", "Connection: close\r\n"));
  const auto all = client.read_all();
  const auto first = all.find("hello"), second = all.find("chunky"), third = all.find("hello", second);
  CHECK(first < second);
  CHECK(second < third);
  CHECK(third != all.npos);
}

TEST_CASE("a chunked answer is framed anew, and unframed for an HTTP/1.0 client") {
  scene s;
  auto client = s.pair.http();
  client.send(s.get("/chunked"));
  const auto answer = client.read_until("0\r\n\r\n");
  CHECK(has(answer, "6\r\nchunky\r\n0\r\n\r\n"));
  CHECK_FALSE(has(answer, "x=y"));
  CHECK_FALSE(has(answer, "X-T"));
  auto old = s.pair.http();
  old.send("GET http://" + s.authority() + "/chunked HTTP/1.0\r\n\r\n");
  const auto plain = old.read_all();
  CHECK(has(plain, "\r\n\r\nchunky"));
  CHECK_FALSE(has(plain, "Transfer-Encoding"));
}

TEST_CASE("bodies with a length and in chunks reach the origin, also byte by byte and after 100 Continue") {
  scene s;
  const auto post = [&](const std::string& path, const std::string& rest) {
    return "POST http://" + s.authority() + path + " HTTP/1.1\r\nHost: a.test\r\n" + rest;
  };
  auto client = s.pair.http();
  client.send(post("/echo", "Content-Length: 4\r\n\r\nbody"));
  CHECK(has(read_sized(client), "\r\n\r\nbody"));
  client.send(
      post("/echo", "Transfer-Encoding: chunked\r\n\r\n3;ext\r\nabc\r\n2\r\nde\r\n0\r\nT: 1\r\n\r\n"));
  CHECK(has(read_sized(client), "\r\n\r\nabcde"));
  client.send_byte_by_byte(post("/echo", "Content-Length: 5\r\n\r\nbytes"));
  CHECK(has(read_sized(client), "\r\n\r\nbytes"));
  client.send(post("/continue", "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n"));
  CHECK(has(client.read_until("\r\n\r\n"), " 100 "));
  client.send("later");
  CHECK(has(read_sized(client), "\r\n\r\nlater"));
}

TEST_CASE("a body of megabytes arrives whole") {
  scene s;
  const std::string body(3 << 20, 'm');
  auto client = s.pair.http();
  std::thread writer([&] {
    client.send("POST http://" + s.authority() + "/echo HTTP/1.1\r\nHost: a.test\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
  });
  const auto answer = read_sized(client);
  writer.join();
  CHECK(answer.size() > body.size());
  CHECK(answer.substr(answer.size() - body.size()) == body);
}

TEST_CASE("an answer that comes before the body has ended is passed on and ends the connection") {
  scene s;
  auto client = s.pair.http();
  client.send("POST http://" + s.authority() +
              "/early HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100\r\n\r\nsome");
  const auto answer = client.read_all();
  CHECK(has(answer, " 413 "));
  CHECK(has(answer, "no\n"));
  CHECK(has(answer, "Connection: close"));
}

TEST_CASE("an answer without framing lasts until its end") {
  scene s;
  auto client = s.pair.http();
  client.send(s.get("/close"));
  const auto answer = client.read_all();
  CHECK(has(answer, "\r\n\r\nuntil the end"));
  CHECK_FALSE(client.was_reset());
}

TEST_CASE("an answer that breaks off breaks off at the client as well") {
  scene s;
  auto client = s.pair.http();
  client.send(s.get("/cut"));
  client.read_all();
  CHECK(client.was_reset());
}

TEST_CASE("what is no safe HTTP answer becomes a 502") {
  scene s;
  for (const std::string path : {"/garbage", "/smuggled", "/hangup"}) {
    CAPTURE(path);
    auto client = s.pair.http();
    client.send(s.get(path));
    const auto answer = client.read_all();
    CHECK(has(answer, "HTTP/1.1 502 "));
    CHECK_FALSE(has(answer, "hello"));
  }
}

TEST_CASE("an origin that does not answer in time is a 504") {
  auto settings = running_pair::quick();
  settings.idle_timeout = 100ms;
  scene s(settings);
  auto client = s.pair.http();
  client.send(s.get("/hang"));
  CHECK(has(client.read_all(), "HTTP/1.1 504 "));
}

TEST_CASE("a websocket upgrade becomes a tunnel") {
  scene s;
  auto client = s.pair.http();
  client.send("GET ws://" + s.authority() +
              "/websocket HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
  CHECK(has(client.read_until("\r\n\r\n"), "HTTP/1.1 101 "));
  CHECK(client.read_exactly(5) == "first");
  client.send("frames");
  CHECK(client.read_exactly(6) == "frames");
}

TEST_CASE("a connection that died in the pool is replaced without the client noticing") {
  std::atomic<int> served = 0;
  test::tcp_origin origin([&](tcp_peer& peer) {
    // One answer a connection, then it ends without having said so.
    peer.read_until("\r\n\r\n");
    ++served;
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  });
  const auto authority = "a.test:" + std::to_string(origin.port());
  running_pair pair(running_pair::allowing({authority}));
  pair.dns().set("a.test", {{"127.0.0.1"}});
  auto client = pair.http();
  for (int i = 0; i < 20; ++i) {
    client.send("GET http://" + authority + "/ HTTP/1.1\r\nHost: a.test\r\n\r\n");
    CHECK(has(read_sized(client), "\r\n\r\nok"));
  }
  CHECK(served == 20);
}

TEST_CASE("malformed requests are refused with 400 and a reason, and nothing reaches an origin") {
  scene s;
  const auto host = s.authority();
  for (const auto& request : {
           "GET http://" + host +
               "/ HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
           "GET http://" + host + "/ HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n",
           "GET http://" + host + "/ HTTP/1.1\nHost: a\n\n",
           "GET http://" + host + "/ HTTP/1.1\r\nA : b\r\n\r\n",
           "GET http://" + host + "/ HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
           "GET http://a.test@" + host + "/ HTTP/1.1\r\n\r\n",
           "GET https://" + host + "/ HTTP/1.1\r\n\r\n",
           "GET ftp://" + host + "/ HTTP/1.1\r\n\r\n",
           std::string("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"),
           std::string("GET * HTTP/1.1\r\n\r\n"),
           std::string("CONNECT a.test HTTP/1.1\r\n\r\n"),
           std::string("CONNECT a.test:0 HTTP/1.1\r\n\r\n"),
           std::string("CONNECT a.test:99999 HTTP/1.1\r\n\r\n"),
           std::string("\x16\x03\x01\x02\x00\x01\x00\x01", 8),
       }) {
    CAPTURE(request);
    auto client = s.pair.http();
    client.send(request);
    const auto answer = client.read_all();
    CHECK(has(answer, "HTTP/1.1 400 "));
    CHECK(has(answer, "X-Proxy-Error: malformed\r\n"));
  }
  CHECK(s.origin.connections() == 0);
}

TEST_CASE("a head of a megabyte is a 431") {
  scene s;
  auto client = s.pair.http();
  client.send("GET http://" + s.authority() + "/ HTTP/1.1\r\n");
  std::thread writer([&] { client.send("X: " + std::string(1 << 20, 'x') + "\r\n\r\n"); });
  const auto answer = client.read_all();
  writer.join();
  CHECK((has(answer, "HTTP/1.1 431 ") || client.was_reset()));
  CHECK(s.origin.connections() == 0);
}
