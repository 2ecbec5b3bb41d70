#include "plugins/egress/socks.hpp"

#include <doctest/doctest.h>

#include "plugins/egress/secret.hpp"

using namespace ccbox::egress;
using namespace std::string_literals;

namespace {

using state = socks_parser::state;

struct outcome {
  state now = state::more;
  std::size_t consumed = 0;
  std::string replies;
  std::string to, why, offending;
  bool four_a = false;
  bool operator==(const outcome&) const = default;
};

// In pieces of `piece` bytes; 0: everything in one segment.
outcome feed(std::string_view input, const std::optional<std::string>& password = {}, std::size_t piece = 0) {
  socks_parser parser(password);
  outcome all;
  if (piece == 0) piece = std::max<std::size_t>(input.size(), 1);
  for (std::size_t at = 0; at < input.size() && all.now == state::more; at += piece) {
    const auto part = input.substr(at, piece);
    const auto step = parser.feed(part);
    all.now = step.now;
    all.consumed += step.consumed;
    all.replies += step.reply;
    if (step.now == state::more) CHECK(step.consumed == part.size());
  }
  if (all.now == state::request) all.to = authority_text(parser.to());
  all.why = parser.why();
  all.offending = parser.offending_bytes();
  all.four_a = parser.four_a();
  return all;
}

// The same in one segment, byte by byte and in threes.
outcome answer(const std::string& input, const std::optional<std::string>& password = {}) {
  const auto whole = feed(input, password);
  CHECK(feed(input, password, 1) == whole);
  CHECK(feed(input, password, 3) == whole);
  if (whole.now == state::refused) CHECK_FALSE(whole.why.empty());
  return whole;
}

const std::string greeting = "\x05\x01\x00"s;
const std::string no_authentication = "\x05\x00"s;

std::string bytes(unsigned value, unsigned count) {
  std::string out;
  while (count-- > 0)
    out += static_cast<char>(value >> 8 * count);
  return out;
}

std::string named(const std::string& name, unsigned port = 443) {
  return "\x05\x01\x00\x03"s + static_cast<char>(name.size()) + name + bytes(port, 2);
}

std::string ten(unsigned code) {
  return "\x05"s + static_cast<char>(code) + "\x00\x01\x00\x00\x00\x00\x00\x00"s;
}

std::string four(unsigned address, const std::string& user, unsigned port = 443, char command = 1) {
  return "\x04"s + command + bytes(port, 2) + bytes(address, 4) + user + '\0';
}

std::string four_a(const std::string& name, const std::string& user = "", unsigned port = 443) {
  return four(1, user, port) + name + '\0';
}

const std::string four_granted = "\x00\x5a\x00\x00\x00\x00\x00\x00"s;
const std::string four_refused = "\x00\x5b\x00\x00\x00\x00\x00\x00"s;

}  // namespace

TEST_CASE("greeting and request in one segment, with early data behind, are taken apart exactly") {
  const auto message = greeting + named("Example.Test.");
  const auto a = answer(message + "\x16\x03\x01");
  CHECK(a.now == state::request);
  CHECK(a.consumed == message.size());
  CHECK(a.replies == no_authentication);
  CHECK(a.to == "example.test:443");
}

TEST_CASE("SOCKS5 takes names, IPv4 and IPv6 addresses") {
  CHECK(answer(greeting + named("a.test", 22)).to == "a.test:22");
  CHECK(answer(greeting + "\x05\x01\x00\x01\xc0\x00\x02\x07\x01\xbb"s).to == "192.0.2.7:443");
  CHECK(answer(greeting + "\x05\x01\x00\x04"s + std::string(15, '\0') + "\x01\x00\x50"s).to == "[::1]:80");
  CHECK(answer(greeting + "\x05\x01\x00\x04"s + std::string(10, '\0') + "\xff\xff\x7f\x00\x00\x09\x00\x50"s)
            .to == "127.0.0.9:80");
}

TEST_CASE("an address written as a name is that address") {
  CHECK(answer(greeting + named("127.0.0.1")).to == "127.0.0.1:443");
  CHECK(answer(greeting + named("2130706441")).to == "127.0.0.9:443");
  CHECK(answer(greeting + named("0x7f.1")).to == "127.0.0.1:443");
  CHECK(answer(greeting + named("::1")).to == "[::1]:443");
  CHECK(answer(four_a("127.9")).to == "127.0.0.9:443");
}

TEST_CASE("a finished parser consumes nothing more") {
  for (const auto& message : {greeting + named("a.test"), "\x05\x01\x02"s}) {
    socks_parser parser;
    const auto first = parser.feed(message);
    const auto again = parser.feed(message);
    CHECK(again.now == first.now);
    CHECK(again.consumed == 0);
    CHECK(again.reply.empty());
  }
}

TEST_CASE("a request that is not complete wants more") {
  for (const auto& message : {greeting + named("a.test"), four(0xc0000207, "me"), four_a("a.test", "me")}) {
    for (std::size_t size = 0; size < message.size(); ++size)
      CHECK(feed(std::string_view(message).substr(0, size)).now == state::more);
    CHECK(feed(message).now == state::request);
  }
}

TEST_CASE("no acceptable method is answered 05 FF") {
  const auto none = "\x05\xff"s;
  CHECK(answer("\x05\x00"s).replies == none);
  CHECK(answer("\x05\x01\x02"s).replies == none);
  CHECK(answer("\x05\x03\x01\x02\x80"s).replies == none);
  CHECK(answer("\x05\x01\xff"s).replies == none);
  CHECK(answer("\x05\x01\x00"s, "secret").replies == none);
  CHECK(answer("\x05\x01\x00"s, "secret").now == state::refused);
  CHECK(answer("\x05\x02\x02\x00"s).replies == no_authentication);
  CHECK(answer("\x05\xff"s + std::string(254, '\x01') + '\0').replies == no_authentication);
}

TEST_CASE("a first byte that is no version is refused without a reply") {
  for (const auto& message : {"\x06\x01\x00"s, "\x00"s, "GET / HTTP/1.1\r\n"s, "\x16\x03\x01"s}) {
    const auto a = answer(message);
    CHECK(a.now == state::refused);
    CHECK(a.consumed == 1);
    CHECK(a.replies.empty());
  }
}

TEST_CASE("with a password any user name and the right password pass") {
  const auto offer = "\x05\x02\x00\x02"s;
  const auto message = offer + "\x01\x02me\x06secret"s + named("a.test");
  const auto a = answer(message, "secret");
  CHECK(a.now == state::request);
  CHECK(a.replies == "\x05\x02\x01\x00"s);
  CHECK(a.consumed == message.size());
  CHECK(answer(offer + "\x01\x00\x06secret"s + named("a.test"), "secret").now == state::request);
}

TEST_CASE("a wrong password is refused and nothing behind it is read") {
  const auto offer = "\x05\x01\x02"s;
  for (const auto& password : {"\x01\x02me\x06secreT"s, "\x01\x02me\x05secre"s, "\x01\x02me\x07secrets"s,
                               "\x01\x02me\x0csecretsecret"s, "\x01\x06secret\x00"s, "\x01\x02me\x00"s}) {
    const auto a = answer(offer + password + named("a.test"), "secret");
    CHECK(a.now == state::refused);
    CHECK(a.replies == "\x05\x02\x01\x01"s);
    CHECK(a.consumed == offer.size() + password.size());
  }
  CHECK(answer(offer + "\x05\x02me\x06secret"s, "secret").replies == "\x05\x02\x01\x01"s);
}

TEST_CASE("secrets are equal only when all of their bytes are") {
  CHECK(same_secret("secret", "secret"));
  CHECK_FALSE(same_secret("secreT", "secret"));
  CHECK_FALSE(same_secret("secretsecret", "secret"));
  CHECK_FALSE(same_secret("", "secret"));
  CHECK_FALSE(same_secret("x", ""));
  CHECK_FALSE(same_secret("\0"s, ""));
  CHECK(same_secret("", ""));
}

TEST_CASE("BIND, UDP ASSOCIATE and unknown commands get a full ten-byte reply 7") {
  for (const char command : {'\x02', '\x03', '\x00', '\x7f', '\xff'}) {
    for (auto request : {named("a.test"), "\x05\x01\x00\x01\x00\x00\x00\x00\x00\x00"s}) {
      request[1] = command;
      const auto a = answer(greeting + request);
      CHECK(a.now == state::refused);
      CHECK(a.replies == no_authentication + ten(7));
      CHECK(a.consumed == greeting.size() + request.size());
    }
  }
}

TEST_CASE("an unknown address type gets reply 8 at once: nobody knows how long it is") {
  for (const char type : {'\x00', '\x02', '\x05', '\xff'}) {
    const auto a = answer(greeting + "\x05\x01\x00"s + type);
    CHECK(a.now == state::refused);
    CHECK(a.replies == no_authentication + ten(8));
  }
}

TEST_CASE("another version in the request, or a reserved byte that is not 0, gets reply 1") {
  CHECK(answer(greeting + "\x04\x01\x00\x03"s).replies == no_authentication + ten(1));
  auto request = named("a.test");
  request[2] = 1;
  CHECK(answer(greeting + request).replies == no_authentication + ten(1));
}

TEST_CASE("a malformed name gets reply 1, and the log its bytes as sent") {
  for (const auto& name : {""s,
                           "evil.test\0.allowed.test"s,
                           "127.0.0.9\0.allowed.test"s,
                           "allowed.test\0.evil.test"s,
                           "a.test\0"s,
                           "a.test\r\n"s,
                           "a.test x"s,
                           "a..test"s,
                           "a.test.."s,
                           ".a.test"s,
                           "."s,
                           "169.254.169.254.."s,
                           "b\xc3\xbc.test"s,
                           "a\xe3\x80\x82test"s,
                           "\xff\xfe"s,
                           "evil.test:443.allowed.test"s,
                           "a.test:443"s,
                           "a@b.test"s,
                           "a/b.test"s,
                           "a%00.test"s,
                           "*.a.test"s,
                           "::ffff:1.2.3.4%x.allowed.test"s,
                           "fe80::1%eth0"s,
                           "1.2.3.4.5"s,
                           std::string(64, 'a') + ".test",
                           std::string(255, 'a')}) {
    const auto a = answer(greeting + named(name));
    CHECK_MESSAGE(a.now == state::refused, name);
    CHECK(a.replies == no_authentication + ten(1));
    CHECK(a.offending == name);
    if (name.find('\0') != name.npos) continue;
    const auto in_four_a = answer(four_a(name));
    CHECK(in_four_a.now == state::refused);
    CHECK(in_four_a.replies == four_refused);
    CHECK(in_four_a.offending == name);
  }
}

TEST_CASE("port 0 is refused in both versions") {
  CHECK(answer(greeting + named("a.test", 0)).replies == no_authentication + ten(1));
  CHECK(answer(greeting + "\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x00"s).replies == no_authentication + ten(1));
  CHECK(answer(four(0xc0000207, "", 0)).replies == four_refused);
  CHECK(answer(four_a("a.test", "", 0)).replies == four_refused);
}

TEST_CASE("SOCKS4 takes an address, SOCKS4a a name behind 0.0.0.x") {
  const auto plain = answer(four(0xc0000207, "me") + "early");
  CHECK(plain.now == state::request);
  CHECK(plain.to == "192.0.2.7:443");
  CHECK_FALSE(plain.four_a);
  CHECK(plain.replies.empty());
  CHECK(plain.consumed == four(0xc0000207, "me").size());

  const auto name = answer(four_a("A.test", "me") + "early");
  CHECK(name.now == state::request);
  CHECK(name.to == "a.test:443");
  CHECK(name.four_a);
  CHECK(name.consumed == four_a("A.test", "me").size());

  CHECK(answer(four(255, "") + "a.test\0"s).to == "a.test:443");
  CHECK(answer(four(0, "")).to == "0.0.0.0:443");
  CHECK(answer(four(256, "")).to == "0.0.1.0:443");
}

TEST_CASE("SOCKS4 BIND and unknown commands are refused with 5b") {
  CHECK(answer(four(0xc0000207, "", 443, 2)).replies == four_refused);
  CHECK(answer(four(0xc0000207, "", 443, 0)).replies == four_refused);
}

TEST_CASE("a SOCKS4 user id or name of more than 255 bytes is refused when the 256th is there") {
  CHECK(answer(four(0xc0000207, std::string(255, 'u'))).now == state::request);
  const auto user = answer("\x04\x01\x01\xbb\xc0\x00\x02\x07"s + std::string(100000, 'u'));
  CHECK(user.now == state::refused);
  CHECK(user.consumed == 8 + 256);
  CHECK(user.replies == four_refused);

  const auto name = answer(four(1, "") + std::string(100000, 'n'));
  CHECK(name.now == state::refused);
  CHECK(name.consumed == four(1, "").size() + 256);
  CHECK(name.replies == four_refused);
}

TEST_CASE("with a password the user id of SOCKS4 must be it") {
  CHECK(answer(four(0xc0000207, "secret"), "secret").now == state::request);
  CHECK(answer(four_a("a.test", "secret"), "secret").now == state::request);
  for (const auto* user : {"", "secreT", "secre", "secrets"}) {
    CHECK(answer(four(0xc0000207, user), "secret").replies == four_refused);
    CHECK(answer(four_a("a.test", user), "secret").replies == four_refused);
  }
}

TEST_CASE("replies have ten bytes in SOCKS5 and eight in SOCKS4") {
  socks_parser five, four_parser;
  five.feed(greeting + named("a.test"));
  REQUIRE(five.version() == socks_version::v5);
  CHECK(five.reply(socks_reply::succeeded) == ten(0));
  CHECK(five.reply(socks_reply::not_allowed) == ten(2));
  CHECK(five.reply(socks_reply::host_unreachable) == ten(4));
  CHECK(five.reply(socks_reply::connection_refused) == ten(5));

  four_parser.feed(four_a("a.test"));
  REQUIRE(four_parser.version() == socks_version::v4);
  CHECK(four_parser.reply(socks_reply::succeeded) == four_granted);
  CHECK(four_parser.reply(socks_reply::not_allowed) == four_refused);
  CHECK(four_parser.reply(socks_reply::connection_refused) == four_refused);
}
