#include "plugins/egress/dns_message.hpp"

#include <doctest/doctest.h>

using namespace ccbox::egress;
using status = dns_answer::status;

namespace {

std::string u16(unsigned value) {
  return {static_cast<char>(value >> 8), static_cast<char>(value & 0xff)};
}

std::string wire(const std::string& name) {
  std::string out;
  for (std::size_t start = 0; start <= name.size();) {
    const auto end = std::min(name.find('.', start), name.size());
    out += static_cast<char>(end - start);
    out += name.substr(start, end - start);
    start = end + 1;
  }
  return out + std::string(1, '\0');
}

std::string record(const std::string& owner, unsigned type, unsigned ttl, const std::string& data) {
  return owner + u16(type) + u16(1) + u16(ttl >> 16) + u16(ttl & 0xffff) +
         u16(static_cast<unsigned>(data.size())) + data;
}

std::string message(unsigned id, unsigned flags, const std::string& name, unsigned type,
                    const std::vector<std::string>& records) {
  auto out = u16(id) + u16(flags) + u16(1) + u16(static_cast<unsigned>(records.size())) + u16(0) + u16(0) +
             wire(name) + u16(type) + u16(1);
  for (const auto& one : records)
    out += one;
  return out;
}

const std::string pointer_to_question("\xc0\x0c", 2);
const std::string address("\x01\x02\x03\x04", 4);

dns_answer read(const std::string& text) {
  return read_dns_answer(text, 7, "a.test", dns_type::a);
}

}  // namespace

TEST_CASE("a question asks for one name and type, recursively, with room for a large answer") {
  const auto text = write_dns_question(0x1234, "a.test", dns_type::aaaa);
  CHECK(text == u16(0x1234) + u16(0x0100) + u16(1) + u16(0) + u16(0) + u16(1) + wire("a.test") + u16(28) +
                    u16(1) + std::string(1, '\0') + u16(41) + u16(1232) + std::string(6, '\0'));
}

TEST_CASE("addresses of the name are found, with the least TTL") {
  const auto answer =
      read(message(7, 0x8180, "A.Test", 1,
                   {record(pointer_to_question, 1, 60, address), record(wire("a.test"), 1, 5, address),
                    record(wire("a.test"), 1, 90, "\x05\x06\x07\x08")}));
  REQUIRE(answer.what == status::answered);
  CHECK(answer.result.what == lookup_result::status::found);
  CHECK(answer.result.addresses ==
        std::vector{ip_address::from_v4(0x01020304), ip_address::from_v4(0x05060708)});
  CHECK(answer.result.ttl.count() == 5);
}

TEST_CASE("aliases are followed, other names are not") {
  const auto answer = read(
      message(7, 0x8180, "a.test", 1,
              {record(wire("evil.test"), 1, 60, "\x09\x09\x09\x09"),
               record(pointer_to_question, 5, 30, wire("b.test")), record(wire("b.test"), 1, 60, address)}));
  CHECK(answer.result.addresses == std::vector{ip_address::from_v4(0x01020304)});
  CHECK(answer.result.ttl.count() == 30);
}

TEST_CASE("aliases in a circle find nothing") {
  const auto answer = read(message(
      7, 0x8180, "a.test", 1,
      {record(wire("a.test"), 5, 30, wire("b.test")), record(wire("b.test"), 5, 30, wire("a.test"))}));
  CHECK(answer.what == status::answered);
  CHECK(answer.result.addresses.empty());
}

TEST_CASE("another id, another question or no answer at all is not ours") {
  const auto good = record(pointer_to_question, 1, 60, address);
  CHECK(read(message(8, 0x8180, "a.test", 1, {good})).what == status::not_ours);
  CHECK(read(message(7, 0x0100, "a.test", 1, {good})).what == status::not_ours);
  CHECK(read(message(7, 0x8180, "b.test", 1, {good})).what == status::not_ours);
  CHECK(read(message(7, 0x8180, "a.test", 28, {good})).what == status::not_ours);
  CHECK(read("").what == status::not_ours);
}

TEST_CASE("codes: no such name, failure, truncated") {
  CHECK(read(message(7, 0x8183, "a.test", 1, {})).result.what == lookup_result::status::no_such_name);
  CHECK(read(message(7, 0x8182, "a.test", 1, {})).result.what == lookup_result::status::failed);
  CHECK(read(message(7, 0x8380, "a.test", 1, {})).what == status::truncated);
}

TEST_CASE("half an answer is a failure, whatever it is cut at") {
  const auto whole = message(7, 0x8180, "a.test", 1, {record(pointer_to_question, 1, 60, address)});
  const auto question_bytes = 12 + wire("a.test").size() + 4;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    const auto answer = read(whole.substr(0, length));
    if (length < question_bytes)
      CHECK(answer.what == status::not_ours);
    else
      CHECK(answer.result.what == lookup_result::status::failed);
  }
}

TEST_CASE("compression pointers that go nowhere, forward or around are a failure") {
  for (const std::string& owner :
       {std::string("\xc0\x18", 2), std::string("\xff\xff", 2), std::string("\xc0", 1)}) {
    const auto answer = read(message(7, 0x8180, "a.test", 1, {record(owner, 1, 60, address)}));
    CHECK(answer.result.what == lookup_result::status::failed);
  }
}

TEST_CASE("an address of the wrong length does not count, nor does a dot inside a label") {
  CHECK(read(message(7, 0x8180, "a.test", 1, {record(pointer_to_question, 1, 60, "\x01\x02\x03")}))
            .result.addresses.empty());
  const std::string dotted(
      "\x06"
      "a.test\0",
      8);
  CHECK(read(message(7, 0x8180, "a.test", 1, {record(dotted, 1, 60, address)})).result.addresses.empty());
}
