#include "plugins/egress/response_head.hpp"

#include <doctest/doctest.h>

using namespace ccbox::egress;
using namespace std::string_literals;

namespace {

using fields = std::vector<std::pair<std::string, std::string>>;
using framing = response_head::framing;

request_head asked(const std::string& method = "GET", unsigned minor_version = 1) {
  request_head request;
  request.method = method;
  request.minor_version = minor_version;
  request.to = {"a.test", 80};
  request.origin_target = "/";
  return request;
}

request_head asked_for_websocket() {
  auto request = asked();
  request.websocket = true;
  return request;
}

std::variant<response_head, http_error> read(const std::string& head, const request_head& request) {
  std::size_t scanned = 0;
  const auto found = find_response_head_end(head, scanned);
  if (const auto* wrong = std::get_if<http_error>(&found)) return *wrong;
  REQUIRE(std::get<std::size_t>(found) == head.size());
  return parse_response_head(head, request);
}

response_head parse(const std::string& head, const request_head& request = asked()) {
  const auto parsed = read(head, request);
  if (const auto* wrong = std::get_if<http_error>(&parsed)) FAIL(head << ": " << std::string(wrong->why));
  return std::get<response_head>(parsed);
}

// Every refusal is a 502.
bool refused(const std::string& head, const request_head& request = asked()) {
  const auto parsed = read(head, request);
  const auto* wrong = std::get_if<http_error>(&parsed);
  if (wrong) CHECK(wrong->status == 502);
  if (wrong) CHECK(!wrong->why.empty());
  return wrong != nullptr;
}

std::string ok(const std::string& lines, const std::string& version = "1.1") {
  return "HTTP/" + version + " 200 OK\r\n" + lines + "\r\n";
}

std::string with_status(const std::string& status, const std::string& lines) {
  return "HTTP/1.1 " + status + "\r\n" + lines + "\r\n";
}

std::string written(const std::string& head, const request_head& request = asked(), bool close = false) {
  return write_response_head(parse(head, request), request, close);
}

}  // namespace

TEST_CASE("an answer with a length passes with its fields, and its connection can be used again") {
  const auto r = parse(ok("Server: x\r\nContent-Length: 5\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n"));
  CHECK(r.status == 200);
  CHECK(r.reason == "OK");
  CHECK(r.minor_version == 1);
  CHECK(r.body == framing::length);
  CHECK(r.body_bytes == 5);
  CHECK(r.keep_alive);
  CHECK_FALSE(r.switches);
  CHECK(r.fields == fields{{"Server", "x"}, {"Set-Cookie", "a"}, {"Set-Cookie", "b"}});
  CHECK(written(ok("Server: x\r\nContent-Length: 5\r\n")) ==
        "HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: 5\r\n\r\n");
}

TEST_CASE("a chunked answer stays chunked, and ends by close for an HTTP/1.0 client") {
  const auto head = ok("Transfer-Encoding: chunked\r\n");
  CHECK(parse(head).body == framing::chunked);
  CHECK_FALSE(ends_by_close(parse(head), asked()));
  CHECK(written(head) == "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  CHECK(ends_by_close(parse(head), asked("GET", 0)));
  CHECK(written(head, asked("GET", 0)) == "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
}

TEST_CASE("an answer without length goes on until the origin closes, whatever it says about keep-alive") {
  const auto r = parse(ok("Connection: keep-alive\r\n"));
  CHECK(r.body == framing::until_close);
  CHECK_FALSE(r.keep_alive);
  CHECK(ends_by_close(r, asked()));
  CHECK(written(ok("")) == "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
}

TEST_CASE("the origin's connection is kept by version and Connection; close wins") {
  const auto kept = [](const std::string& lines, const std::string& version) {
    return parse(ok("Content-Length: 0\r\n" + lines, version)).keep_alive;
  };
  CHECK(kept("", "1.1"));
  CHECK_FALSE(kept("Connection: close\r\n", "1.1"));
  CHECK_FALSE(kept("", "1.0"));
  CHECK(kept("Connection: keep-alive\r\n", "1.0"));
  CHECK_FALSE(kept("Connection: keep-alive, Close\r\n", "1.0"));
}

TEST_CASE("the answer to HEAD has no body, and tells the length all the same") {
  for (const auto* lines : {"Content-Length: 12345\r\n", "Transfer-Encoding: chunked\r\n", ""}) {
    const auto r = parse(ok(lines), asked("HEAD"));
    CHECK(r.body == framing::none);
    CHECK(r.keep_alive);
  }
  CHECK(written(ok("Content-Length: 12345\r\n"), asked("HEAD")) ==
        "HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n");
  CHECK(written(ok("Transfer-Encoding: chunked\r\n"), asked("HEAD")) == "HTTP/1.1 200 OK\r\n\r\n");
}

TEST_CASE("304 has no body, and may tell the length of what was not sent") {
  const auto r = parse(with_status("304 Not Modified", "Content-Length: 12345\r\nETag: x\r\n"));
  CHECK(r.body == framing::none);
  CHECK(r.keep_alive);
  CHECK(written(with_status("304 Not Modified", "Content-Length: 12345\r\n")) ==
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 12345\r\n\r\n");
}

TEST_CASE("204 has no body and no length") {
  CHECK(parse(with_status("204 No Content", "")).body == framing::none);
  CHECK(parse(with_status("204 No Content", "Content-Length: 0\r\n")).keep_alive);
  CHECK(written(with_status("204 No Content", "Content-Length: 0\r\n")) == "HTTP/1.1 204 No Content\r\n\r\n");
}

TEST_CASE(
    "a 204 or 304 that speaks of a body costs the connection to the origin: nothing behind it is read") {
  for (const auto& head : {with_status("204 No Content", "Content-Length: 5\r\n"),
                           with_status("204 No Content", "Transfer-Encoding: chunked\r\n"),
                           with_status("304 Not Modified", "Transfer-Encoding: chunked\r\n")}) {
    CHECK(parse(head).body == framing::none);
    CHECK_FALSE(parse(head).keep_alive);
    CHECK(written(head).find("\r\nTransfer-Encoding") == std::string::npos);
  }
}

TEST_CASE("interim answers pass without body and without Connection") {
  const auto hints = with_status("103 Early Hints", "Link: </x>\r\nConnection: close\r\n");
  CHECK(parse(hints).body == framing::none);
  CHECK(parse(hints).keep_alive);
  CHECK(written(hints, asked(), true) == "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n");
  CHECK(written(with_status("100 Continue", "Content-Length: 0\r\n")) == "HTTP/1.1 100 Continue\r\n\r\n");
}

TEST_CASE("an interim answer with a body, or in HTTP/1.0, is refused") {
  CHECK(refused(with_status("100 Continue", "Content-Length: 5\r\n")));
  CHECK(refused(with_status("103 Early Hints", "Transfer-Encoding: chunked\r\n")));
  CHECK(refused("HTTP/1.0 100 Continue\r\n\r\n"));
}

TEST_CASE("101 is welcome only to a request for a websocket, and only to websocket") {
  const auto switching = with_status(
      "101 Switching Protocols", "Upgrade: WebSocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n");
  const auto r = parse(switching, asked_for_websocket());
  CHECK(r.switches);
  CHECK(r.body == framing::none);
  CHECK_FALSE(r.keep_alive);
  CHECK(written(switching, asked_for_websocket()) ==
        "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: x\r\n"
        "Connection: upgrade\r\nUpgrade: websocket\r\n\r\n");
  CHECK(refused(switching));
  CHECK(refused(with_status("101 x", "Upgrade: h2c\r\nConnection: upgrade\r\n"), asked_for_websocket()));
  CHECK(refused(with_status("101 x", "Upgrade: websocket\r\n"), asked_for_websocket()));
  CHECK(refused(with_status("101 x", ""), asked_for_websocket()));
}

TEST_CASE("a websocket that the origin declines is an ordinary answer") {
  const auto r = parse(with_status("426 Upgrade Required",
                                   "Upgrade: websocket\r\nConnection: upgrade\r\n"
                                   "Content-Length: 3\r\n"),
                       asked_for_websocket());
  CHECK_FALSE(r.switches);
  CHECK(r.body == framing::length);
  CHECK(r.fields.empty());
}

TEST_CASE("a 2xx to CONNECT begins the tunnel, any other answer is framed as usual") {
  CHECK(parse(ok("Content-Length: 5\r\n"), asked("CONNECT")).body == framing::length);
  auto request = asked("CONNECT");
  request.connect = true;
  CHECK(parse(ok("Content-Length: 5\r\n"), request).body == framing::none);
  CHECK(parse(ok("Transfer-Encoding: chunked\r\n"), request).body == framing::none);
  CHECK(parse(with_status("407 x", "Content-Length: 5\r\n"), request).body == framing::length);
}

TEST_CASE("framing that can be read in two ways is refused") {
  for (const auto* lines :
       {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5\r\nContent-Length: 5\r\n", "Content-Length: 5, 5\r\n", "Content-Length: +5\r\n",
        "Content-Length: -1\r\n", "Content-Length: 05\r\n", "Content-Length: 99999999999999999999\r\n",
        "Content-Length:\r\n", "Transfer-Encoding: xchunked\r\n", "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, chunked\r\n", "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "Content-Length : 5\r\n",
        "X: y\r\n Content-Length: 5\r\n", "Content_Length: 5\r\n"}) {
    CHECK_MESSAGE(refused(ok(lines)), lines);
    CHECK_MESSAGE(refused(ok(lines), asked("HEAD")), lines);
  }
  CHECK(refused(ok("Transfer-Encoding: chunked\r\n", "1.0")));
}

TEST_CASE("what is no status line of HTTP/1.0 or 1.1 is refused") {
  for (const auto* line :
       {"ICY 200 OK", "HTTP/1.2 200 OK", "HTTP/2 200", "HTTP/2.0 200 OK", "http/1.1 200 OK", "HTTP/1.1",
        "HTTP/1.1 ", "HTTP/1.1  200 OK", "HTTP/1.1 20 OK", "HTTP/1.1 2000 OK", "HTTP/1.1 099 x",
        "HTTP/1.1 2x0 OK", "HTTP/1.1 -20 OK", "HTTP/1.1\t200 OK", "HTTP/1.1 200\tOK", " HTTP/1.1 200 OK",
        "SSH-2.0-OpenSSH_9.2", "<html>", "HTTP/1.1200 OK"})
    CHECK_MESSAGE(refused(line + "\r\nContent-Length: 0\r\n\r\n"s), line);
}

TEST_CASE("a reason may be anything printable, or missing with its space") {
  CHECK(parse(with_status("200", "")).reason.empty());
  CHECK(parse(with_status("200 ", "")).reason.empty());
  CHECK(parse(with_status("200 Alles in Ordnung \xc3\xa4", "")).reason == "Alles in Ordnung \xc3\xa4");
  CHECK(parse(with_status("999 Who knows", "")).status == 999);
  CHECK(written(with_status("200", "Content-Length: 0\r\n")) == "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n");
}

TEST_CASE("garbage instead of a head is refused as soon as it shows") {
  for (const auto& bytes :
       {"\r\nHTTP/1.1 200 OK\r\n\r\n"s, "\n"s, "HTTP/1.1 200 OK\n\n"s, "HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n"s,
        "HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n"s, "\x15\x03\x03\0\x02\x02\x46"s, std::string(70000, 'x')}) {
    std::size_t scanned = 0;
    const auto found = find_response_head_end(bytes, scanned);
    REQUIRE(std::holds_alternative<http_error>(found));
    CHECK(std::get<http_error>(found).status == 502);
    CHECK(std::holds_alternative<http_error>(parse_response_head(bytes, asked())));
  }
}

TEST_CASE("a head that is cut short, or has something behind it, is not parsed") {
  const auto head = ok("Content-Length: 5\r\n");
  for (const auto& bytes : {""s, head.substr(0, head.size() - 1), head + "x", head + head}) {
    const auto parsed = parse_response_head(bytes, asked());
    REQUIRE(std::holds_alternative<http_error>(parsed));
    CHECK(std::get<http_error>(parsed).status == 502);
  }
}

TEST_CASE("too many fields are refused") {
  std::string lines;
  for (std::size_t i = 0; i < max_fields; ++i)
    lines += "X: y\r\n";
  CHECK(parse(ok(lines)).fields.size() == max_fields);
  CHECK(refused(ok(lines + "X: y\r\n")));
}

TEST_CASE("what is between the origin and us is not forwarded") {
  CHECK(parse(ok("Connection: X-Hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nProxy-Connection: close\r\n"
                 "Proxy-Authenticate: Basic\r\nTrailer: x\r\nUpgrade: h2\r\nY: 2\r\nContent-Length: 0\r\n"))
            .fields == fields{{"Y", "2"}});
  CHECK(written(ok("Connection: content-length\r\nContent-Length: 5\r\n")) ==
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
}

TEST_CASE("the client learns whether its connection stays") {
  const auto head = ok("Content-Length: 0\r\n");
  CHECK(written(head, asked(), true) == "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  CHECK(written(head, asked("GET", 0)) ==
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n");
  CHECK(written(head, asked("GET", 0), true) ==
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

TEST_CASE("what we write is what we read: the written head parses to the same answer") {
  for (const auto& head :
       {ok("X: y\r\nContent-Length: 5\r\n"), ok("Transfer-Encoding: chunked\r\n"), ok(""),
        with_status("304 x", "Content-Length: 7\r\n"), with_status("103 x", "Link: y\r\n")}) {
    const auto again = written(head);
    CHECK(written(again) == again);
    CHECK(parse(again).body == parse(head).body);
    CHECK(parse(again).body_bytes == parse(head).body_bytes);
    CHECK(parse(again).fields == parse(head).fields);
  }
}
