#include "plugins/egress/body_framing.hpp"

#include <doctest/doctest.h>

#include <random>

using namespace ccbox::egress;

namespace {

using state = chunked_decoder::state;

struct outcome {
  state now = state::more;
  std::size_t consumed = 0;
  std::string data;
  bool operator==(const outcome&) const = default;
};

// In pieces of `piece` bytes; 0: all at once.
outcome decode(std::string_view input, std::size_t piece = 0) {
  chunked_decoder decoder;
  outcome all;
  if (piece == 0) piece = std::max<std::size_t>(input.size(), 1);
  for (std::size_t at = 0; at < input.size() && all.now == state::more; at += piece) {
    const auto part = input.substr(at, piece);
    const auto step = decoder.feed(part, all.data);
    all.now = step.now;
    all.consumed += step.consumed;
    if (step.now == state::more) CHECK(step.consumed == part.size());
  }
  return all;
}

bool malformed(std::string_view input) {
  return decode(input).now == state::malformed && decode(input, 1).now == state::malformed;
}

outcome done(std::string_view data, std::size_t consumed) {
  return {state::done, consumed, std::string(data)};
}

}  // namespace

TEST_CASE("a chunked body ends where its last chunk ends, and what follows is left alone") {
  const std::string body = "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
  const auto all = decode(body + "GET http://next.test/ HTTP/1.1\r\n");
  CHECK(all == done("hello world", body.size()));
  CHECK(decode("0\r\n\r\n0\r\n\r\n") == done("", 5));
}

TEST_CASE("a finished decoder consumes nothing more") {
  chunked_decoder decoder;
  std::string data;
  REQUIRE(decoder.feed("1\r\nx\r\n0\r\n\r\n", data).now == state::done);
  const auto again = decoder.feed("1\r\ny\r\n", data);
  CHECK(again.now == state::done);
  CHECK(again.consumed == 0);
  CHECK(data == "x");
}

TEST_CASE("a decoder that refused once refuses for ever") {
  chunked_decoder decoder;
  std::string data;
  REQUIRE(decoder.feed("x", data).now == state::malformed);
  const auto again = decoder.feed("1\r\ny\r\n0\r\n\r\n", data);
  CHECK(again.now == state::malformed);
  CHECK(again.consumed == 0);
  CHECK(data.empty());
}

TEST_CASE("chunk sizes are hex digits of either case, leading zeros included") {
  CHECK(decode("A\r\n0123456789\r\n0\r\n\r\n").data == "0123456789");
  CHECK(decode("a\r\n0123456789\r\n0\r\n\r\n").data == "0123456789");
  CHECK(decode("0000000000000001\r\nx\r\n00\r\n\r\n") == done("x", 27));
}

TEST_CASE("a chunk size in any other spelling is refused") {
  for (const auto* size :
       {"+5", "-5", " 5", "5 ", "\t5", "5\t", "0x5", "5h", "", "5,5", "5 5", "\"5\"", "_5"})
    CHECK_MESSAGE(malformed(std::string(size) + "\r\nhello\r\n0\r\n\r\n"), size);
}

TEST_CASE("a chunk size of more than sixteen digits is refused, the largest of sixteen is not") {
  CHECK(malformed("00000000000000005\r\nhello\r\n"));
  CHECK(malformed("10000000000000000\r\nhello\r\n"));
  const auto largest = decode("ffffffffffffffff\r\nhello\r\n0\r\n\r\n");
  CHECK(largest.now == state::more);
  CHECK(largest.data == "hello\r\n0\r\n\r\n");
}

TEST_CASE("lines of a chunked body end in CRLF and nothing else") {
  CHECK(malformed("5\nhello\r\n0\r\n\r\n"));
  CHECK(malformed("5\rhello\r\n0\r\n\r\n"));
  CHECK(malformed("5\r\r\nhello\r\n0\r\n\r\n"));
  CHECK(malformed("5\r\nhello\n0\r\n\r\n"));
  CHECK(malformed("5\r\nhello0\r\n\r\n"));
  CHECK(malformed("5\r\nhello\r0\r\n\r\n"));
  CHECK(malformed("5\r\nhello!\r\n0\r\n\r\n"));
  CHECK(malformed("0\r\n\n"));
  CHECK(malformed("0\n\n"));
  CHECK(malformed("0\r\n\rX"));
  CHECK(malformed("\r\n5\r\nhello\r\n0\r\n\r\n"));
}

TEST_CASE("chunk extensions are dropped") {
  CHECK(decode("5;name=\"va;lue\"\r\nhello\r\n0;last\r\n\r\n") == done("hello", 34));
}

TEST_CASE("a chunk extension cannot hide a line end or a control byte") {
  CHECK(malformed("5;a\nhello\r\n0\r\n\r\n"));
  CHECK(malformed("5;a\rb\r\nhello\r\n0\r\n\r\n"));
  CHECK(malformed(std::string_view("5;a\0b\r\nhello\r\n0\r\n\r\n", 19)));
  CHECK(malformed("5;a\x7f\r\nhello\r\n0\r\n\r\n"));
  CHECK(decode("5;a\tb \xc3\xa4\r\nhello\r\n0\r\n\r\n").data == "hello");
}

TEST_CASE("a line of a chunked body has 4 KiB at most") {
  const std::string fits = "5;" + std::string(4094, 'x');
  CHECK(decode(fits + "\r\nhello\r\n0\r\n\r\n").now == state::done);
  CHECK(malformed(fits + "x\r\nhello\r\n0\r\n\r\n"));
  CHECK(malformed("0\r\n" + std::string(4097, 'x')));
}

TEST_CASE("trailers are dropped, up to 16 KiB") {
  CHECK(decode("1\r\nx\r\n0\r\nDigest: a\r\nHost: evil.test\r\n\r\nrest") == done("x", 39));
  std::string trailer;
  while (trailer.size() + 1024 <= 16 * 1024)
    trailer += "a:" + std::string(1020, 'b') + "\r\n";
  CHECK(decode("0\r\n" + trailer.substr(1024) + "\r\n").now == state::done);
  CHECK(malformed("0\r\n" + trailer + trailer));
}

TEST_CASE("a trailer has no bare line end and no control byte") {
  CHECK(malformed("0\r\na: b\n\r\n"));
  CHECK(malformed("0\r\na: b\rc\r\n\r\n"));
  CHECK(malformed(std::string_view("0\r\na: \0\r\n\r\n", 11)));
}

TEST_CASE("a body that is not complete wants more") {
  const std::string body = "5;x\r\nhello\r\n0\r\na: b\r\n\r\n";
  for (std::size_t size = 0; size < body.size(); ++size)
    CHECK(decode(std::string_view(body).substr(0, size)).now == state::more);
}

TEST_CASE("framing anew keeps the bytes exactly") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::string body, framed;
    for (unsigned chunks = random() % 6; chunks > 0; --chunks) {
      std::string data(random() % 5000, '\0');
      for (auto& c : data)
        c = static_cast<char>(random());
      append_chunk(framed, data);
      body += data;
    }
    framed += last_chunk;
    CHECK(decode(framed + "next") == done(body, framed.size()));
    CHECK(decode(framed + "next", 1 + random() % 700) == done(body, framed.size()));
  }
}

TEST_CASE("an empty chunk is not written: it would end the body") {
  std::string out = "before";
  append_chunk(out, "");
  CHECK(out == "before");
  append_chunk(out, std::string(255, 'x'));
  CHECK(out == "beforeff\r\n" + std::string(255, 'x') + "\r\n");
}

TEST_CASE("a chunked body reads the same in pieces of any size") {
  for (const std::string body :
       {"5\r\nhello\r\n6;e=f\r\n world\r\n0\r\nt: u\r\n\r\nrest", "5\r\nhello\r\n5\nhello", "fffff\r\nabc",
        "2\r\nab\r\n0\r\n\rX", "3\r\nabcd"}) {
    const auto whole = decode(body);
    for (std::size_t piece = 1; piece < body.size(); ++piece)
      CHECK(decode(body, piece) == whole);
  }
}
