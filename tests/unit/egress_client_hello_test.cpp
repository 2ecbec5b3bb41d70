#include "plugins/egress/client_hello.hpp"

#include <doctest/doctest.h>

#include <random>
#include <vector>

using namespace ccbox::egress;
using namespace std::string_literals;
using state = hello_peek::state;

namespace {

// As OpenSSL 3.0 and Node 20 sent them to a socket, all but no_name for allowed.test; `capitals` asked for
// Allowed.TEST. and `fragmented` was sent with -max_send_frag 512 in two records.
constexpr std::string_view tls13 =
    "16030100f1010000ed0303f4528a05357f2b036bdf77bcb279a927bccfe8ff82a7faa85d8d65f4c63ab8c32042c0a5cfff92"
    "facaae9e866d0baa46de64f2cf3a5a33a539724cc40e282e9ca9000813021303130100ff0100009c00000011000f00000c61"
    "6c6c6f7765642e74657374000b000403000102000a00160014001d0017001e00190018010001010102010301040023000000"
    "16000000170000000d001e001c040305030603080708080809080a080b080408050806040105010601002b0003020304002d"
    "00020101003300260024001d00201826d662db5de1c4184728c119215ab6dee288f7f9078618df3e42416701eb34";

constexpr std::string_view tls12 =
    "16030100cc010000c80303de40b87b3fa9b9e3229ba334b00a886c03c629e8d6ca243d7eecc8f4b5b8b3fb000038c02cc030"
    "009fcca9cca8ccaac02bc02f009ec024c028006bc023c0270067c00ac0140039c009c0130033009d009c003d003c0035002f"
    "00ff0100006700000011000f00000c616c6c6f7765642e74657374000b000403000102000a000c000a001d0017001e001900"
    "18002300000016000000170000000d002a0028040305030603080708080809080a080b080408050806040105010601030303"
    "010302040205020602";

constexpr std::string_view tls10 =
    "160301009401000090030164b0fa03d4d704781f061595f40fb14cba251003685f9f65a071fe2d6f4287f400002ec00ac014"
    "0039003800880087c019003a0089c009c0130033003200450044c0180034004600350084002f004100ff0100003900000011"
    "000f00000c616c6c6f7765642e74657374000b000403000102000a000c000a001d0017001e00190018002300000016000000"
    "170000";

constexpr std::string_view no_name =
    "1603010124010001200303cb447e08ac7896e4dcb2b35d00f66043b16282d35cbc2267b380f9f87e3c2ed620509891982c7f"
    "b59f85656f3f8ef8fe07fb34c352c5a8ef3535d910ac270b31f3003e130213031301c02cc030009fcca9cca8ccaac02bc02f"
    "009ec024c028006bc023c0270067c00ac0140039c009c0130033009d009c003d003c0035002f00ff01000099000b00040300"
    "0102000a00160014001d0017001e0019001801000101010201030104002300000016000000170000000d002a002804030503"
    "0603080708080809080a080b080408050806040105010601030303010302040205020602002b000908030403030302030100"
    "2d00020101003300260024001d002008e8d16f92ab9f1f5058ca9262564de185c7e1601b8f029a4675e7dad9ef8111";

constexpr std::string_view fragmented =
    "16030102000100025b0303c72384ad5efd653a07f50adbf88ac47770e8d2a2109a3c9752a851b8539f5d0b20435ea3ce60e5"
    "bf63facdb66f424d1b8379eb8e32819be081762a28710d97e8c3000813021303130100ff0100020a00000011000f00000c61"
    "6c6c6f7765642e74657374000b000403000102000a00160014001d0017001e00190018010001010102010301040023000000"
    "10016a01680870726f746f2d30300870726f746f2d30310870726f746f2d30320870726f746f2d30330870726f746f2d3034"
    "0870726f746f2d30350870726f746f2d30360870726f746f2d30370870726f746f2d30380870726f746f2d30390870726f74"
    "6f2d31300870726f746f2d31310870726f746f2d31320870726f746f2d31330870726f746f2d31340870726f746f2d313508"
    "70726f746f2d31360870726f746f2d31370870726f746f2d31380870726f746f2d31390870726f746f2d32300870726f746f"
    "2d32310870726f746f2d32320870726f746f2d32330870726f746f2d32340870726f746f2d32350870726f746f2d32360870"
    "726f746f2d32370870726f746f2d32380870726f746f2d32390870726f746f2d33300870726f746f2d33310870726f746f2d"
    "33320870726f746f2d33330870726f746f2d33340870726f746f2d33350870726f746f2d33360870726f746f2d3337087072"
    "6f746f2d33380870726f746f2d33390016160301005f000000170000000d001e001c040305030603080708080809080a080b"
    "080408050806040105010601002b0003020304002d00020101003300260024001d002099ead35e45b322e5be3d67b78fe9ed"
    "47c1af9cde2071f552361255bfb568a41c";

constexpr std::string_view node =
    "160301016d01000169030398eeb8d82a1b0f78e97042dd867fb153306ffc8be34c33a3e7731131a0f07b9d205285dc55d465"
    "fff87571794aec4eaf38bc1cbef5f78c3ce81b5ccb05976346c10076130213031301c02fc02bc030c02c009ec0270067c028"
    "006b00a3009fcca9cca8ccaac0afc0adc0a3c09fc05dc061c057c05300a2c0aec0acc0a2c09ec05cc060c056c052c024006a"
    "c0230040c00ac01400390038c009c01300330032009dc0a1c09dc051009cc0a0c09cc050003d003c0035002f00ff010000aa"
    "00000011000f00000c616c6c6f7765642e74657374000b000403000102000a00160014001d0017001e001900180100010101"
    "0201030104002300000016000000170000000d002a0028040305030603080708080809080a080b0804080508060401050106"
    "01030303010302040205020602002b00050403040303002d00020101003300260024001d00205e324b36fe68c9c24d52524c"
    "8f7f3af4996f33d1ced4c54541e2ad44dfdf4259";

constexpr std::string_view capitals =
    "160301013a010001360303585d6cf9f4edc8a0ec39c675072eb665d1a477b65c59363a59a0652105d22f5e20be5b3dbd4b61"
    "1caba2d4688901b36732818646aec3f933db725b352a571fb346003e130213031301c02cc030009fcca9cca8ccaac02bc02f"
    "009ec024c028006bc023c0270067c00ac0140039c009c0130033009d009c003d003c0035002f00ff010000af000000120010"
    "00000d416c6c6f7765642e544553542e000b000403000102000a00160014001d0017001e0019001801000101010201030104"
    "002300000016000000170000000d002a0028040305030603080708080809080a080b08040805080604010501060103030301"
    "0302040205020602002b0009080304030303020301002d00020101003300260024001d00206bac9a3c06a175964b70ee934f"
    "3a6c0fc68c4dc284101933bb16996974c87736";

std::string bytes_of(std::string_view hexadecimal) {
  const auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string out;
  for (std::size_t i = 0; i < hexadecimal.size(); i += 2)
    out += static_cast<char>(value(hexadecimal[i]) * 16 + value(hexadecimal[i + 1]));
  return out;
}

std::string shown(std::string_view bytes) {
  const auto peek = peek_client_hello(bytes);
  CHECK((peek.what == state::named) != peek.name.empty());
  switch (peek.what) {
    case state::need_more:
      return "need more";
    case state::not_tls:
      return "not TLS";
    case state::malformed:
      return "malformed";
    case state::no_name:
      return "no name";
    case state::named:
      return "named " + peek.name;
  }
  return "";
}

std::string number(std::size_t value, int size) {
  std::string out;
  for (int i = size - 1; i >= 0; --i)
    out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

std::string vector(int size, const std::string& content) {
  return number(content.size(), size) + content;
}

std::string extension(int type, const std::string& content) {
  return number(static_cast<std::size_t>(type), 2) + vector(2, content);
}

std::string host_name(const std::string& name) {
  return "\0"s + vector(2, name);
}

std::string server_name(const std::string& name) {
  return extension(0, vector(2, host_name(name)));
}

std::string record(const std::string& content, char type = 22) {
  return type + "\x03\x01"s + vector(2, content);
}

std::string message(const std::string& body, char type = 1) {
  return type + vector(3, body);
}

const std::string body_start =
    "\x03\x03"s + std::string(32, 'r') + vector(1, "") + vector(2, "\x13\x01") + vector(1, "\0"s);

std::string hello(const std::string& extensions) {
  return record(message(body_start + vector(2, extensions)));
}

// Cut into records of `size` bytes of content.
std::string fragmented_by(const std::string& whole, std::size_t size) {
  std::string out;
  for (std::size_t at = 5; at < whole.size(); at += size)
    out += record(whole.substr(at, size));
  return out;
}

// A hello of one record with one more extension at its end.
std::string with_extension(const std::string& whole, const std::string& added) {
  auto body = whole.substr(9);
  std::size_t at = 2 + 32;
  at += 1U + static_cast<unsigned char>(body[at]);
  at += 2U + (static_cast<std::size_t>(static_cast<unsigned char>(body[at])) << 8) +
        static_cast<unsigned char>(body[at + 1]);
  at += 1U + static_cast<unsigned char>(body[at]);
  return record(message(body.substr(0, at) + vector(2, body.substr(at + 2) + added)));
}

}  // namespace

TEST_CASE("the name in a hello of every version is found") {
  for (const auto real : {tls13, tls12, tls10, node, fragmented})
    CHECK(shown(bytes_of(real)) == "named allowed.test");
  CHECK(shown(hello(server_name("allowed.test"))) == "named allowed.test");
}

TEST_CASE("the name is given as it is on the wire") {
  CHECK(shown(bytes_of(capitals)) == "named Allowed.TEST.");
  CHECK(peek_client_hello(hello(server_name("evil.test\0.allowed.test"s))).name ==
        "evil.test\0.allowed.test"s);
  CHECK(peek_client_hello(hello(server_name("\xff \r\n"))).name == "\xff \r\n");
  CHECK(shown(hello(server_name(std::string(8000, 'a')))) == "named " + std::string(8000, 'a'));
}

TEST_CASE("a hello without a name says so") {
  CHECK(shown(bytes_of(no_name)) == "no name");
  CHECK(shown(hello("")) == "no name");
  CHECK(shown(record(message(body_start))) == "no name");
  CHECK(shown(hello(extension(0xfe0d, "encrypted"))) == "no name");
}

TEST_CASE("extensions that no one knows, GREASE and an encrypted hello do not hide the name") {
  for (const int type : {0xfe0d, 0x0a0a, 0xfafa, 0xffff, 65281}) {
    CHECK(shown(with_extension(bytes_of(tls13), extension(type, "whatever"))) == "named allowed.test");
    CHECK(shown(hello(extension(type, "") + server_name("allowed.test"))) == "named allowed.test");
  }
  CHECK(shown(with_extension(bytes_of(no_name), server_name("late.test"))) == "named late.test");
}

TEST_CASE("every byte before the last one needs more, in one record and in many") {
  for (const auto real : {tls13, tls12, tls10, no_name, fragmented}) {
    const auto whole = bytes_of(real);
    CHECK(shown("") == "need more");
    for (std::size_t size = 0; size < whole.size(); ++size)
      REQUIRE_MESSAGE(shown(whole.substr(0, size)) == "need more", size);
  }
  const auto slow = fragmented_by(bytes_of(tls13), 1);
  for (std::size_t size = 0; size < slow.size(); ++size)
    REQUIRE(shown(slow.substr(0, size)) == "need more");
  CHECK(shown(slow) == "named allowed.test");
}

TEST_CASE("a hello in fragments of any size is the same hello") {
  const auto whole = bytes_of(tls13);
  for (std::size_t size = 1; size < whole.size(); ++size)
    REQUIRE(shown(fragmented_by(whole, size)) == "named allowed.test");
}

TEST_CASE("what follows the hello does not matter") {
  for (const auto& after : {"x"s, "\x16\x03\x03"s, "\x14\x03\x03\x00\x01\x01"s, std::string(20000, 'e')})
    CHECK(shown(bytes_of(tls13) + after) == "named allowed.test");
}

TEST_CASE("other protocols are not TLS, from their first bytes on") {
  for (const auto& bytes :
       {"SSH-2.0-OpenSSH_9.2\r\n"s, "GET / HTTP/1.1\r\n"s, "G"s, "\0"s, "\x16\xfe\xff"s,
        "\x80\x2e\x01\x03\x01"s, "\x16\x02"s, "\x15\x02"s, "\x13\x03"s, "\x19\x03"s, "\x05\x01\x00"s})
    CHECK(shown(bytes) == "not TLS");
}

TEST_CASE("another record of TLS in front of the hello is malformed: some servers skip it") {
  for (const char type : {20, 21, 23, 24}) {
    const auto first = std::string(1, type) + "\x03\x01\x00\x02\x01\x5a"s;
    CHECK(shown(first.substr(0, 1)) == "need more");
    for (std::size_t size = 2; size <= first.size(); ++size)
      CHECK(shown(first.substr(0, size)) == "malformed");
    CHECK(shown(first + bytes_of(tls13)) == "malformed");
  }
}

TEST_CASE("a name that two readers might read differently is malformed") {
  const auto twice = server_name("allowed.test") + server_name("evil.test");
  CHECK(shown(hello(twice)) == "malformed");
  CHECK(shown(with_extension(bytes_of(tls13), server_name("evil.test"))) == "malformed");
  CHECK(shown(hello(extension(0, vector(2, host_name("allowed.test") + host_name("evil.test"))))) ==
        "malformed");
  CHECK(shown(hello(extension(0, vector(2, "\x01"s + vector(2, "allowed.test"))))) == "malformed");
  CHECK(shown(hello(extension(0, vector(2, "\x01"s + vector(2, "x") + host_name("allowed.test"))))) ==
        "malformed");
  CHECK(shown(hello(extension(0, vector(2, host_name("allowed.test")) + "x"))) == "malformed");
  CHECK(shown(hello(extension(0, vector(2, host_name("allowed.test") + "x")))) == "malformed");
  CHECK(shown(hello(server_name(""))) == "malformed");
  CHECK(shown(hello(extension(0, ""))) == "malformed");
  CHECK(shown(hello(extension(0, vector(2, "")))) == "malformed");
  CHECK(shown(hello(extension(0, number(200, 2) + host_name("allowed.test")))) == "malformed");
}

TEST_CASE("what begins as TLS and is no ClientHello is malformed") {
  const auto good = body_start + vector(2, server_name("allowed.test"));
  CHECK(shown(record(message(good, 2))) == "malformed");
  CHECK(shown(record(message(good) + "rest")) == "malformed");
  CHECK(shown(record(message(good + "x"))) == "malformed");
  CHECK(shown(record(message(body_start + "\0"s))) == "malformed");
  CHECK(shown(record(message(body_start + number(9999, 2) + server_name("a.test")))) == "malformed");
  CHECK(shown(record(message(body_start + vector(2, server_name("a.test") + "\0"s)))) == "malformed");
  CHECK(shown(record(message(body_start + vector(2, server_name("a.test") + "\0\x01\0\x09"s)))) ==
        "malformed");
  CHECK(shown(record(message(""))) == "malformed");
  CHECK(shown(record("")) == "malformed");
  CHECK(shown("\x16\x03\x01\x40\x01\x01"s) == "malformed");
  CHECK(shown("\x16\x03\x01\x00\x01\x00"s) == "malformed");
  const auto start = "\x03\x03"s + std::string(32, 'r');
  const auto end = vector(2, server_name("allowed.test"));
  const auto with = [&](const std::string& id, const std::string& ciphers, const std::string& compressions) {
    return shown(record(message(start + vector(1, id) + vector(2, ciphers) + vector(1, compressions) + end)));
  };
  CHECK(with(std::string(32, 'i'), "\x13\x01", "\0"s) == "named allowed.test");
  CHECK(with(std::string(33, 'i'), "\x13\x01", "\0"s) == "malformed");
  CHECK(with("", "", "\0"s) == "malformed");
  CHECK(with("", "\x13", "\0"s) == "malformed");
  CHECK(with("", "\x13\x01", "") == "malformed");
  CHECK(shown(record(message("\x02\x03"s + good.substr(2)))) == "malformed");
}

TEST_CASE("a hello that another record interrupts is malformed") {
  const auto whole = bytes_of(tls13);
  const auto first = record(whole.substr(5, 100));
  CHECK(shown(first) == "need more");
  CHECK(shown(first + "\x17") == "malformed");
  CHECK(shown(first + record("\x02\x28", 21)) == "malformed");
  CHECK(shown(first + record("")) == "malformed");
  CHECK(shown(first + "\x16\x02") == "malformed");
  CHECK(shown(first + record(whole.substr(105))) == "named allowed.test");
}

TEST_CASE("a hello that does not end is given up at the limit") {
  CHECK(shown("\x16\x03\x01\x40\x00\x01\x00\xff\xff"s) == "malformed");
  const auto endless = hello(extension(21, std::string(15000, 'p')));
  CHECK(shown(endless) == "no name");
  const auto slow = fragmented_by(endless, 1);
  REQUIRE(slow.size() > max_client_hello_bytes);
  CHECK(shown(slow.substr(0, max_client_hello_bytes - 1)) == "need more");
  CHECK(shown(slow.substr(0, max_client_hello_bytes)) == "malformed");
  CHECK(shown(endless.substr(0, endless.size() - 1)) == "need more");
}

TEST_CASE("a hello with any byte changed is read without harm, and more bytes never change a verdict") {
  std::mt19937 random(9);
  const auto whole = bytes_of(tls13);
  for (int i = 0; i < 20000; ++i) {
    auto changed = i % 2 == 0 ? whole : fragmented_by(whole, 1 + random() % 200);
    for (auto left = 1 + random() % 3; left > 0; --left)
      changed[random() % changed.size()] = static_cast<char>(random());
    const auto early = peek_client_hello(std::string_view(changed).substr(0, random() % changed.size()));
    const auto late = peek_client_hello(changed);
    if (early.what == state::need_more) continue;
    REQUIRE(early.what == late.what);
    REQUIRE(early.name == late.name);
  }
}
