#include "plugins/egress/request_head.hpp"

#include <doctest/doctest.h>

#include <random>

using namespace ccbox::egress;
using namespace std::string_literals;

namespace {

using fields = std::vector<std::pair<std::string, std::string>>;

struct answer {
  std::size_t head_bytes = 0;
  unsigned status = 0;  // 0: no error
  std::string_view why;
  bool operator==(const answer&) const = default;
};

// What a connection that reads in pieces of `piece` bytes learns; 0: everything at once.
answer find(std::string_view bytes, std::size_t piece = 0) {
  std::size_t scanned = 0;
  if (piece == 0) piece = std::max<std::size_t>(bytes.size(), 1);
  for (std::size_t size = std::min(piece, bytes.size());; size = std::min(size + piece, bytes.size())) {
    const auto found = find_head_end(bytes.substr(0, size), scanned);
    if (const auto* wrong = std::get_if<http_error>(&found)) return {0, wrong->status, wrong->why};
    if (std::get<std::size_t>(found) != 0) return {std::get<std::size_t>(found), 0, {}};
    if (size == bytes.size()) return {};
  }
}

std::variant<request_head, http_error> read(std::string_view bytes) {
  const auto found = find(bytes);
  if (found.status != 0) return http_error{found.status, found.why};
  REQUIRE(found.head_bytes != 0);
  return parse_request_head(bytes.substr(0, found.head_bytes));
}

request_head parse(std::string_view bytes) {
  const auto parsed = read(bytes);
  if (const auto* wrong = std::get_if<http_error>(&parsed))
    FAIL(std::string(bytes) << ": " << std::string(wrong->why));
  return std::get<request_head>(parsed);
}

unsigned refusal(std::string_view bytes) {
  const auto parsed = read(bytes);
  const auto* wrong = std::get_if<http_error>(&parsed);
  if (wrong) CHECK(!wrong->why.empty());
  return wrong ? wrong->status : 0;
}

std::string why(std::string_view bytes) {
  const auto parsed = read(bytes);
  return std::holds_alternative<http_error>(parsed) ? std::string(std::get<http_error>(parsed).why) : "";
}

// A request for http://a.test/ with these field lines, each ending in CRLF.
std::string get(const std::string& lines, const std::string& version = "1.1") {
  return "GET http://a.test/ HTTP/" + version + "\r\nHost: a.test\r\n" + lines + "\r\n";
}

std::string post(const std::string& lines, const std::string& version = "1.1") {
  return "POST http://a.test/ HTTP/" + version + "\r\nHost: a.test\r\n" + lines + "\r\n";
}

std::string target(const std::string& text) {
  return "GET " + text + " HTTP/1.1\r\nHost: a.test\r\n\r\n";
}

std::string connect(const std::string& authority, const std::string& lines = "") {
  return "CONNECT " + authority + " HTTP/1.1\r\n" + lines + "\r\n";
}

}  // namespace

TEST_CASE("an absolute form names the destination and what the origin is asked for") {
  const auto r = parse("GET http://A.Test:8080/x?y=z HTTP/1.1\r\nHost: a.test:8080\r\nAccept: */*\r\n\r\n");
  CHECK(r.method == "GET");
  CHECK_FALSE(r.connect);
  CHECK(r.minor_version == 1);
  CHECK(authority_text(r.to) == "a.test:8080");
  CHECK(r.origin_target == "/x?y=z");
  CHECK(r.body == body_kind::none);
  CHECK(r.keep_alive);
  CHECK_FALSE(r.websocket);
  CHECK_FALSE(r.expects_continue);
  CHECK_FALSE(r.proxy_authorization);
  CHECK(r.fields == fields{{"Accept", "*/*"}});
}

TEST_CASE("http:// and ws:// mean port 80, in any case of their letters") {
  for (const auto* uri : {"http://a.test/", "HTTP://a.test/", "ws://a.test/", "Ws://a.test/"}) {
    CHECK(authority_text(parse(target(uri)).to) == "a.test:80");
    CHECK(parse(target(uri)).origin_target == "/");
  }
}

TEST_CASE("a URI without a path asks for /, and OPTIONS without one for *") {
  CHECK(parse(target("http://a.test")).origin_target == "/");
  const auto options = parse("OPTIONS http://a.test HTTP/1.1\r\nHost: a.test\r\n\r\n");
  CHECK(options.origin_target == "*");
  CHECK(write_request_head(options) == "OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n");
  CHECK(parse("OPTIONS http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n").origin_target == "/");
}

TEST_CASE("schemes that the proxy does not fetch are refused with the way to go") {
  CHECK(refusal(target("https://a.test/")) == 400);
  CHECK(why(target("https://a.test/")).find("https:// is not fetched by the proxy: use CONNECT") == 0);
  CHECK(why(target("HTTPS://a.test/")) == why(target("https://a.test/")));
  CHECK(why(target("wss://a.test/")).find("wss:// is not opened by the proxy: use CONNECT") == 0);
  CHECK(why(target("ftp://a.test:18080/")).find("ftp:// is not fetched by the proxy: use CONNECT") == 0);
  for (const auto* uri : {"gopher://a.test/", "file:///etc/passwd", "://a.test/", "htt p://a.test/"})
    CHECK(refusal(target(uri)) == 400);
}

TEST_CASE("a request that names no host is refused") {
  for (const auto* text :
       {"/", "/x", "*", "//a.test/", "a.test", "a.test:80", "http:a.test", "http:/a.test/"})
    CHECK_MESSAGE(refusal(target(text)) == 400, text);
  CHECK(why(target("/x")).find("this is a proxy") == 0);
}

TEST_CASE("an authority is a host and a port, nothing else") {
  for (const auto* authority : {"",
                                ":80",
                                "user@a.test",
                                "user:pass@a.test",
                                "a.test@evil.test",
                                "a.test:80@evil.test",
                                "a.test\\",
                                "a.test\\@evil.test",
                                "a.test%2e",
                                "a.test%2eevil.test",
                                "a.test%00",
                                "%61.test",
                                "a.test:0",
                                "a.test:65536",
                                "a.test:99999999999999999999",
                                "a.test:-1",
                                "a.test:+80",
                                "a.test:80:80",
                                "a.test:8o",
                                "a..test",
                                ".a.test",
                                "a.test..",
                                "[::1",
                                "::1",
                                "[::1%eth0]",
                                "[::1%25eth0]",
                                "[::1]x",
                                "[a.test]",
                                "a.test;",
                                "a,test",
                                "*.a.test",
                                "a.test[",
                                "[]",
                                "1.2.3.4.5",
                                "1.2.3.256",
                                "a.test:080"}) {
    CHECK_MESSAGE(refusal(target("http://"s + authority + "/")) == 400, authority);
    CHECK_MESSAGE(refusal(connect(authority + ":443"s)) == 400, authority);
  }
}

TEST_CASE("every spelling of a host is the same destination, and the origin sees the canonical one") {
  const auto host = [](const std::string& spelled) {
    return host_text(parse(target("http://" + spelled)).to);
  };
  CHECK(host("EXAMPLE.Test.") == "example.test");
  CHECK(host("127.1") == "127.0.0.1");
  CHECK(host("0x7f.1") == "127.0.0.1");
  CHECK(host("2130706433") == "127.0.0.1");
  CHECK(host("0177.0.0.1") == "127.0.0.1");
  CHECK(host("[::ffff:127.0.0.1]") == "127.0.0.1");
  CHECK(host("[0:0::1]") == "[::1]");
  CHECK(write_request_head(parse(target("http://EXAMPLE.test./"))) ==
        "GET / HTTP/1.1\r\nHost: example.test\r\n\r\n");
  CHECK(write_request_head(parse(target("http://[0::1]:8080/"))) ==
        "GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n");
}

TEST_CASE("a name that is too long is refused before anybody looks it up") {
  CHECK(refusal(target("http://" + std::string(64, 'a') + ".test/")) == 400);
  std::string name;
  while (name.size() < 254)
    name += "abc.";
  CHECK(refusal(target("http://" + name + "test/")) == 400);
  CHECK(refusal(connect(name + "test:443")) == 400);
}

TEST_CASE("a fragment, a query without a path and bytes that need escaping are refused") {
  for (const auto* uri : {"http://a.test/#x", "http://a.test#@evil.test/", "http://a.test?x",
                          "http://evil.test?.a.test/", "http://a.test/\xc3\xa4", "http://a.test/\xa0x"})
    CHECK_MESSAGE(refusal(target(uri)) == 400, uri);
  CHECK(parse(target("http://a.test/?x")).origin_target == "/?x");
}

TEST_CASE("escapes and backslashes of the path are the origin's business") {
  CHECK(parse(target("http://a.test/%2e%2e/\\x//y?z=http://evil.test/")).origin_target ==
        "/%2e%2e/\\x//y?z=http://evil.test/");
  CHECK(parse(target("http://a.test//evil.test/")).origin_target == "//evil.test/");
}

TEST_CASE("Host never decides: it is rebuilt from the destination") {
  const auto r = parse("GET http://a.test/ HTTP/1.1\r\nhOsT: evil.test\r\nX: y\r\n\r\n");
  CHECK(authority_text(r.to) == "a.test:80");
  CHECK(write_request_head(r) == "GET / HTTP/1.1\r\nHost: a.test\r\nX: y\r\n\r\n");
}

TEST_CASE("two Host fields, or a malformed one, are refused") {
  CHECK(refusal(get("Host: a.test\r\n")) == 400);
  for (const auto* host : {"", "a.test, evil.test", "a.test evil.test", "evil.test/a.test", "u@a.test",
                           "a.test:0", "a.test:65536", "[::1%eth0]", "http://a.test", "a..test"}) {
    const auto lines = "Host: "s + host + "\r\n\r\n";
    CHECK_MESSAGE(refusal("GET http://a.test/ HTTP/1.1\r\n" + lines) == 400, host);
    CHECK_MESSAGE(refusal("CONNECT a.test:443 HTTP/1.1\r\n" + lines) == 400, host);
  }
}

TEST_CASE("HTTP/1.1 needs a Host, HTTP/1.0 and CONNECT do without") {
  CHECK(refusal("GET http://a.test/ HTTP/1.1\r\n\r\n") == 400);
  CHECK(parse("GET http://a.test/ HTTP/1.0\r\n\r\n").minor_version == 0);
  CHECK(parse("CONNECT a.test:443 HTTP/1.0\r\n\r\n").connect);
  CHECK(parse("CONNECT a.test:443 HTTP/1.1\r\n\r\n").connect);
}

TEST_CASE("CONNECT names host and port") {
  const auto r = parse(connect("A.test:8443", "Host: whatever.test\r\nUser-Agent: x\r\n"));
  CHECK(r.connect);
  CHECK(authority_text(r.to) == "a.test:8443");
  CHECK(authority_text(parse(connect("[::1]:443")).to) == "[::1]:443");
  for (const auto* wrong : {"a.test", "a.test:", "https://a.test:443", "http://a.test/", "/", "*",
                            "a.test:443/", "evil.test:443.a.test", "[::1]", "::1:443"})
    CHECK_MESSAGE(refusal(connect(wrong)) == 400, wrong);
}

TEST_CASE("a CONNECT has no body, whatever its fields say, but they must be well-formed") {
  CHECK(parse(connect("a.test:443", "Content-Length: 5\r\n")).body == body_kind::none);
  CHECK(parse(connect("a.test:443", "Transfer-Encoding: chunked\r\n")).body == body_kind::none);
  CHECK_FALSE(parse(connect("a.test:443", "Content-Length: 5\r\n")).fields.size());
  CHECK(refusal(connect("a.test:443", "Content-Length: +5\r\n")) == 400);
  CHECK(refusal(connect("a.test:443", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n")) == 400);
}

TEST_CASE("the request line is three words with one space between") {
  for (const auto* line : {"",
                           "GET",
                           "GET http://a.test/",
                           "GET  http://a.test/ HTTP/1.1",
                           "GET http://a.test/  HTTP/1.1",
                           " GET http://a.test/ HTTP/1.1",
                           "GET http://a.test/ HTTP/1.1 ",
                           "GET\thttp://a.test/\tHTTP/1.1",
                           "GET http://a.test/ x HTTP/1.1",
                           "GET http://a.test/\tx HTTP/1.1",
                           "GET  HTTP/1.1",
                           "G(T http://a.test/ HTTP/1.1",
                           "G\xc3\xa4 http://a.test/ HTTP/1.1",
                           "GET http://a.test/ http/1.1",
                           "GET http://a.test/ HTTP/1",
                           "GET http://a.test/ HTTP/1.1x",
                           "GET http://a.test/ HTTP/1.10",
                           "GET http://a.test/ HTTP/01.1",
                           "GET http://a.test/ HTTP/11",
                           "GET http://a.test/ HTTP /1.1",
                           "GET http://a.test/ HTTP/+.1",
                           "GET http://a.test/ ICY"})
    CHECK_MESSAGE(refusal(line + "\r\nHost: a.test\r\n\r\n"s) == 400, line);
}

TEST_CASE("versions but 1.0 and 1.1 are not spoken") {
  for (const auto* version : {"0.9", "1.2", "1.9", "2.0", "3.0"})
    CHECK(refusal("GET http://a.test/ HTTP/"s + version + "\r\nHost: a.test\r\n\r\n") == 505);
  CHECK(refusal("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") == 505);
}

TEST_CASE("methods are any token as written, but CONNECT and HEAD have one spelling") {
  CHECK(parse("get http://a.test/ HTTP/1.0\r\n\r\n").method == "get");
  CHECK(parse("M-SEARCH! http://a.test/ HTTP/1.0\r\n\r\n").method == "M-SEARCH!");
  CHECK(refusal("head http://a.test/ HTTP/1.0\r\n\r\n") == 400);
  CHECK(refusal("Connect a.test:443 HTTP/1.0\r\n\r\n") == 400);
  CHECK(refusal("Connect http://a.test/ HTTP/1.0\r\n\r\n") == 400);
}

TEST_CASE("a body has a length or is chunked") {
  const auto length = parse(post("Content-Length: 18446744073\r\n"));
  CHECK(length.body == body_kind::length);
  CHECK(length.body_bytes == 18446744073u);
  CHECK(write_request_head(length) ==
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 18446744073\r\n\r\n");
  CHECK(parse(post("Content-Length: 0\r\n")).body == body_kind::length);
  CHECK(parse(post("Content-Length: 9223372036854775807\r\n")).body_bytes == 9223372036854775807u);
  for (const auto* coding : {"chunked", "Chunked", "CHUNKED", "\tchunked \t"}) {
    const auto chunked = parse(post("transfer-encoding:"s + coding + "\r\n"));
    CHECK(chunked.body == body_kind::chunked);
    CHECK(write_request_head(chunked) ==
          "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n");
  }
  CHECK(parse(get("Transfer-Encoding: chunked\r\n")).body == body_kind::chunked);
  CHECK(parse(post("")).body == body_kind::none);
}

TEST_CASE("a Content-Length in any other spelling is refused") {
  for (const auto* length : {"",
                             "+5",
                             "-5",
                             "-0",
                             "5, 5",
                             "5,5",
                             "05",
                             "00",
                             "0x5",
                             "5.0",
                             "5 5",
                             "5;",
                             "\"5\"",
                             "five",
                             "1e3",
                             "9223372036854775808",
                             "18446744073709551616",
                             "99999999999999999999999999",
                             "5\xa0",
                             "\xd9\xa5"})
    CHECK_MESSAGE(refusal(post("Content-Length: "s + length + "\r\n")) == 400, length);
}

TEST_CASE("a repeated Content-Length is refused, equal or not") {
  CHECK(refusal(post("Content-Length: 5\r\nContent-Length: 5\r\n")) == 400);
  CHECK(refusal(post("Content-Length: 5\r\ncontent-length: 6\r\n")) == 400);
}

TEST_CASE("a Transfer-Encoding in any other spelling is refused") {
  for (const auto* coding : {"", "xchunked", "chunkedx", "chunked, chunked", "chunked,", ",chunked",
                             "gzip, chunked", "chunked, gzip", "identity", "identity, chunked", "gzip",
                             "chunked;q=1", "\"chunked\"", "chunked chunked", "chunke\xc4\x8f"})
    CHECK_MESSAGE(refusal(post("Transfer-Encoding: "s + coding + "\r\n")) == 400, coding);
  CHECK(refusal(post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")) == 400);
  CHECK(refusal(post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n")) == 400);
  CHECK(refusal(post("Transfer-Encoding: chunked\r\n", "1.0")) == 400);
  CHECK(refusal(post("Transfer-Encoding: \x0b"s + "chunked\r\n")) == 400);
}

TEST_CASE("Content-Length together with Transfer-Encoding is refused in either order") {
  CHECK(refusal(post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n")) == 400);
  CHECK(refusal(post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n")) == 400);
  CHECK(refusal(post("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n")) == 400);
}

TEST_CASE("framing fields with an underscore are refused: some origins take them for the real ones") {
  CHECK(refusal(post("Content_Length: 5\r\n")) == 400);
  CHECK(refusal(post("transfer_ENCODING: chunked\r\n")) == 400);
  CHECK(parse(get("X_Length: 5\r\n")).fields == fields{{"X_Length", "5"}});
}

TEST_CASE("lines end in CRLF and nothing else, and no control byte is anywhere") {
  for (const auto& bytes :
       {"GET http://a.test/ HTTP/1.1\nHost: a.test\n\n"s,
        "GET http://a.test/ HTTP/1.1\r\nHost: a.test\n\r\n"s,
        "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\n"s,
        "GET http://a.test/ HTTP/1.1\rHost: a.test\r\r"s,
        "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\r\n\r\n"s, "\nGET http://a.test/ HTTP/1.1\r\n\r\n"s,
        "GET http://a.test/ HTTP/1.1\r\nX: a\rHost: evil.test\r\n\r\n"s,
        "GET http://a.test/ HTTP/1.1\r\nX: a\nHost: evil.test\r\n\r\n"s,
        "GET http://a.test\0.evil.test/ HTTP/1.1\r\n\r\n"s, "GET http://a.test/ HTTP/1.1\r\nX: a\0b\r\n\r\n"s,
        "GET http://a.test/ HTTP/1.1\r\nX: a\x7f\r\n\r\n"s,
        "GET http://a.test/ HTTP/1.1\r\nX: a\x1b[2J\r\n\r\n"s, "\x16\x03\x01\x02\x00\x01"s}) {
    CHECK_MESSAGE(find(bytes).status == 400, bytes);
    CHECK(find(bytes, 1) == find(bytes));
  }
}

TEST_CASE("one empty line before a request is skipped, a second is not") {
  CHECK(parse("\r\nGET http://a.test/ HTTP/1.0\r\n\r\n").method == "GET");
  CHECK(find("\r\n\r\nGET http://a.test/ HTTP/1.0\r\n\r\n").status == 400);
  CHECK(find("\r\n").head_bytes == 0);
}

TEST_CASE("field lines are refused unless they are a token, a colon and text") {
  for (const auto* line : {"Host : a.test", "X\t: y", " X: y", "\tX: y", ": y", ":", "X", "X y: z", "X(y): z",
                           "X\xc3\xa4: y", "\"X\": y", "Transfer-Encoding : chunked", "Content-Length\t: 5"})
    CHECK_MESSAGE(refusal(get(line + "\r\n"s)) == 400, line);
  CHECK(refusal(get("X: y\r\n z\r\n")) == 400);
  CHECK(refusal(get("X: y\r\n\tz\r\n")) == 400);
  CHECK(refusal(get("X:\r\n \r\n")) == 400);
  CHECK(refusal("GET http://a.test/ HTTP/1.1\r\n Host: a.test\r\nHost: a.test\r\n\r\n") == 400);
}

TEST_CASE("values are passed on as written, without the space around them") {
  CHECK(parse(get("X:y\r\nEmpty:\r\nBlank: \t \r\nT:\t a \t b\t\r\nB: \xff\xc3\xa4:;\"\r\nx: again\r\n"))
            .fields == fields{{"X", "y"},
                              {"Empty", ""},
                              {"Blank", ""},
                              {"T", "a \t b"},
                              {"B", "\xff\xc3\xa4:;\""},
                              {"x", "again"}});
}

TEST_CASE("what is between neighbours only is not forwarded") {
  CHECK(parse(get("Proxy-Connection: keep-alive\r\nKeep-Alive: 5\r\nTE: trailers\r\nTrailer: x\r\n"
                  "Upgrade: h2c\r\nHTTP2-Settings: AAA\r\nProxy-Authorization: Basic x\r\n"
                  "Connection: close, X-Hop ,, HTTP2-Settings,upgrade\r\nx-hop: 1\r\nY: 2\r\n"))
            .fields == fields{{"Y", "2"}});
}

TEST_CASE("Connection cannot name the framing or the host away") {
  const auto r = parse(post("Connection: host, content-length, transfer-encoding\r\nContent-Length: 5\r\n"));
  CHECK(write_request_head(r) == "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\n");
  const auto chunked = parse(post("Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n"));
  CHECK(write_request_head(chunked) ==
        "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n");
}

TEST_CASE("a malformed or endless Connection list is refused") {
  for (const auto* list : {"a b", "close;", "\"close\"", "(x)", "\xc3\xa4"})
    CHECK_MESSAGE(refusal(get("Connection: "s + list + "\r\n")) == 400, list);
  std::string list;
  for (std::size_t i = 0; i < max_connection_options; ++i)
    list += "x,";
  CHECK(parse(get("Connection: " + list + "\r\n")).keep_alive);
  CHECK(refusal(get("Connection: " + list + "x\r\n")) == 431);
}

TEST_CASE("the connection is kept by version, Connection and Proxy-Connection; close wins") {
  CHECK(parse(get("")).keep_alive);
  CHECK_FALSE(parse(get("Connection: Close\r\n")).keep_alive);
  CHECK_FALSE(parse(get("Proxy-Connection: close\r\n")).keep_alive);
  CHECK_FALSE(parse(get("Connection: keep-alive, close\r\n")).keep_alive);
  CHECK_FALSE(parse(get("", "1.0")).keep_alive);
  CHECK(parse(get("Connection: Keep-Alive\r\n", "1.0")).keep_alive);
  CHECK(parse(get("Proxy-Connection: keep-alive\r\n", "1.0")).keep_alive);
  CHECK_FALSE(parse(get("Connection: close\r\nProxy-Connection: keep-alive\r\n", "1.0")).keep_alive);
}

TEST_CASE("an upgrade to websocket is forwarded, any other is dropped") {
  for (const auto* scheme : {"ws", "http"}) {
    const auto r = parse("GET "s + scheme +
                         "://a.test/chat HTTP/1.1\r\nHost: a.test\r\nUpgrade: h2c, WebSocket\r\n"
                         "Connection: keep-alive, Upgrade\r\nSec-WebSocket-Key: x\r\n\r\n");
    CHECK(r.websocket);
    CHECK(write_request_head(r) ==
          "GET /chat HTTP/1.1\r\nHost: a.test\r\nSec-WebSocket-Key: x\r\n"
          "Connection: upgrade\r\nUpgrade: websocket\r\n\r\n");
  }
  CHECK_FALSE(parse(get("Upgrade: h2c\r\nConnection: upgrade\r\n")).websocket);
  CHECK_FALSE(parse(get("Upgrade: websocket\r\n")).websocket);
  CHECK_FALSE(parse(get("Upgrade: websocket\r\nProxy-Connection: upgrade\r\n")).websocket);
  CHECK_FALSE(parse(get("Upgrade: websocket\r\nConnection: upgrade\r\n", "1.0")).websocket);
  CHECK_FALSE(parse(post("Upgrade: websocket\r\nConnection: upgrade\r\n")).websocket);
  CHECK(write_request_head(parse(get("Upgrade: h2c\r\nConnection: upgrade\r\n"))) ==
        "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
}

TEST_CASE("a request for a websocket has no body") {
  const auto upgrade = "Upgrade: websocket\r\nConnection: upgrade\r\n"s;
  CHECK(refusal(get(upgrade + "Content-Length: 5\r\n")) == 400);
  CHECK(refusal(get(upgrade + "Transfer-Encoding: chunked\r\n")) == 400);
  CHECK(parse(get(upgrade + "Content-Length: 0\r\n")).websocket);
}

TEST_CASE("100-continue is expected by requests of HTTP/1.1 with a body only") {
  const auto r = parse(post("Expect: 100-Continue\r\nContent-Length: 5\r\n"));
  CHECK(r.expects_continue);
  CHECK(write_request_head(r) ==
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
  CHECK(parse(post("Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n")).expects_continue);
  CHECK_FALSE(parse(post("Expect: 100-continue\r\nContent-Length: 0\r\n")).expects_continue);
  CHECK_FALSE(parse(post("Expect: 100-continue\r\n")).expects_continue);
  CHECK_FALSE(parse(post("Expect: 100-continue\r\nContent-Length: 5\r\n", "1.0")).expects_continue);
  CHECK(refusal(post("Expect: 200-ok\r\nContent-Length: 5\r\n")) == 417);
  CHECK(refusal(post("Expect: 100-continue, x\r\nContent-Length: 5\r\n")) == 417);
}

TEST_CASE("Proxy-Authorization is for us alone, and once") {
  const auto r = parse(get("Proxy-Authorization: Basic dTpw\r\nAuthorization: Basic eHg=\r\n"));
  CHECK(r.proxy_authorization == "Basic dTpw");
  CHECK(r.fields == fields{{"Authorization", "Basic eHg="}});
  CHECK(refusal(get("Proxy-Authorization: a\r\nProxy-Authorization: a\r\n")) == 400);
}

TEST_CASE("a head has 128 fields and 64 KiB at most") {
  std::string lines;
  for (std::size_t i = 1; i < max_fields; ++i)
    lines += "X: y\r\n";
  CHECK(parse(get(lines)).fields.size() == max_fields - 1);
  CHECK(refusal(get(lines + "X: y\r\n")) == 431);

  const auto bytes = get("X: \r\n").size();
  const auto full = get("X: " + std::string(max_head_bytes - bytes, 'x') + "\r\n");
  REQUIRE(full.size() == max_head_bytes);
  CHECK(find(full).head_bytes == max_head_bytes);
  CHECK(find(get("X: " + std::string(max_head_bytes - bytes + 1, 'x') + "\r\n")).status == 431);
}

TEST_CASE("a head of 1 MiB is refused when 64 KiB of it are there") {
  const auto head = get("X: " + std::string(1 << 20, 'x') + "\r\n");
  CHECK(find(head).status == 431);
  CHECK(find(std::string_view(head).substr(0, max_head_bytes)).status == 431);
  CHECK(find(std::string_view(head).substr(0, max_head_bytes - 1)) == answer{});
  CHECK(find(head, 1000) == find(head));
}

TEST_CASE(
    "a target has 8 KiB at most, and a first line without end is too long rather than too many fields") {
  const auto uri = "http://a.test/"s;
  const auto fits = uri + std::string(max_target_bytes - uri.size(), 'x');
  CHECK(parse(target(fits)).origin_target.size() == fits.size() - uri.size() + 1);
  CHECK(refusal(target(fits + "x")) == 414);
  CHECK(find("GET " + std::string(1 << 20, 'x')).status == 414);
  CHECK(find("\r\nGET " + std::string(1 << 20, 'x'), 777).status == 414);
}

TEST_CASE("a head that is cut short, or has something behind it, is not parsed") {
  const auto head = get("X: y\r\n");
  for (const auto& bytes :
       {""s, head.substr(0, head.size() - 1), head.substr(0, 10), head + "x", head + head})
    CHECK(std::get<http_error>(parse_request_head(bytes)).why == "the head is not complete");
}

TEST_CASE("what follows a head is not part of it") {
  const auto head = get("Content-Length: 5\r\n");
  CHECK(find(head + "hello" + head).head_bytes == head.size());
  CHECK(find(connect("a.test:443") + "\x16\x03\x01\0\n\n"s).head_bytes == connect("a.test:443").size());
}

TEST_CASE("a head is found the same in pieces of any size, whatever is wrong with it") {
  std::mt19937 random(11);
  const std::string alphabet = "\r\r\r\n\n\n :GEThHost/.\t\0x"s;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = round % 2 ? get("X: y\r\n") + "rest" : ""s;
    for (int changes = round % 2 ? 2 : 12; changes > 0; --changes)
      bytes.insert(random() % (bytes.size() + 1), 1, alphabet[random() % alphabet.size()]);
    const auto whole = find(bytes);
    for (const std::size_t piece : {1, 2, 3, 7, 20})
      CHECK(find(bytes, piece) == whole);
  }
}

TEST_CASE("what we write is what we read: the written head parses to the same request") {
  for (const auto& head : {get("X: y\r\nCookie: a=b; c\r\n"),
                           post("Content-Length: 7\r\nConnection: x, close\r\nx: y\r\nz:\r\n"),
                           post("Transfer-Encoding: CHUNKED\r\nExpect: 100-continue\r\nTE: gzip\r\n"),
                           get("Upgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 13\r\n"),
                           "OPTIONS http://a.test:81 HTTP/1.0\r\n\r\n"s,
                           "HEAD HTTP://A.test.:8081/a?b HTTP/1.0\r\nX: y\r\n\r\n"s}) {
    const auto first = parse(head);
    auto written = write_request_head(first);
    const auto path = first.origin_target == "*" ? ""s : first.origin_target;
    written.replace(0, first.method.size() + 1 + first.origin_target.size(),
                    first.method + " http://" + authority_text(first.to) + path);
    const auto second = parse(written);
    CHECK(second.to == first.to);
    CHECK(second.fields == first.fields);
    CHECK(write_request_head(second) == write_request_head(first));
  }
}
