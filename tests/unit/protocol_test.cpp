#include "init/protocol.hpp"

#include <doctest/doctest.h>

#include <array>
#include <functional>

using namespace ccbox::init;

namespace {

exec_message full_exec() {
  exec_message message;
  message.flags = exec_stdin | exec_stderr | exec_pty;
  message.argv = {"sh", "", "-c", "echo 'a b'\n\xff"};
  message.env = {"PATH=/usr/bin:/bin", "EMPTY=", "EQ=a=b"};
  message.cwd = "/work/[x] y";
  message.rows = 24;
  message.cols = 65535;
  message.limits = {{7, 1024}, {9, ~std::uint64_t{0}}};
  return message;
}

std::string u32(std::uint32_t value) {
  return encode_number(value);
}
std::string text(std::string_view value) {
  return u32(static_cast<std::uint32_t>(value.size())) + std::string(value);
}
std::string list(std::initializer_list<std::string_view> values) {
  auto out = u32(static_cast<std::uint32_t>(values.size()));
  for (const auto value : values)
    out += text(value);
  return out;
}
// An exec payload of hand-made parts.
std::string exec_payload(const std::string& flags, const std::string& argv, const std::string& env,
                         const std::string& cwd, const std::string& window, const std::string& limits) {
  return flags + argv + env + cwd + window + limits;
}
const std::string good_argv = list({"true"}), good_env = list({"A=1"}), good_cwd = text("/"),
                  good_window = u32(24) + u32(80), no_limits = u32(0);

// Every proper prefix and one byte more are refused.
void check_exact_length(const std::string& payload, const std::function<bool(std::string_view)>& decodes) {
  REQUIRE(decodes(payload));
  for (std::size_t length = 0; length < payload.size(); ++length) {
    CAPTURE(length);
    CHECK_FALSE(decodes(std::string_view(payload).substr(0, length)));
  }
  CHECK_FALSE(decodes(payload + '\0'));
}

}  // namespace

TEST_CASE("a header survives the journey and is sixteen little-endian bytes") {
  const auto bytes = encode_header({0x010203, frame_type::exec, 3, 0x1122334455667788});
  CHECK(bytes ==
        std::string("\x03\x02\x01\x00\x02\x00\x03\x00\x88\x77\x66\x55\x44\x33\x22\x11", header_bytes));
  const auto header = decode_header(bytes);
  REQUIRE(header);
  CHECK(header->payload_bytes == 0x010203);
  CHECK(header->type == frame_type::exec);
  CHECK(header->descriptors == 3);
  CHECK(header->id == 0x1122334455667788);
}

TEST_CASE("a header of the wrong length, an unknown type or over a limit is refused") {
  const auto decodes = [](const frame_header& header) {
    return decode_header(encode_header(header)).has_value();
  };
  CHECK(decodes({max_payload_bytes, frame_type::setup, max_descriptors, 0}));
  CHECK_FALSE(decodes({max_payload_bytes + 1, frame_type::setup, 0, 0}));
  CHECK_FALSE(decodes({0xffffffff, frame_type::setup, 0, 0}));
  CHECK_FALSE(decodes({0, frame_type::setup, max_descriptors + 1, 0}));
  CHECK_FALSE(decodes({0, frame_type::setup, 0xffff, 0}));
  check_exact_length(encode_header({0, frame_type::exited, 0, 1}),
                     [](std::string_view bytes) { return decode_header(bytes).has_value(); });
}

TEST_CASE("of all 65536 frame types exactly the documented ten are known") {
  int known = 0;
  for (std::uint32_t type = 0; type <= 0xffff; ++type)
    known += decode_header(encode_header({0, static_cast<frame_type>(type), 0, 0})).has_value();
  CHECK(known == 10);
}

TEST_CASE("exec survives the journey with empty words, newlines, bytes that are no UTF-8 and large limits") {
  const auto sent = full_exec();
  const auto received = decode_exec(encode(sent));
  REQUIRE(received);
  CHECK(received->flags == sent.flags);
  CHECK(received->argv == sent.argv);
  CHECK(received->env == sent.env);
  CHECK(received->cwd == sent.cwd);
  CHECK(received->rows == sent.rows);
  CHECK(received->cols == sent.cols);
  CHECK(received->limits == sent.limits);
}

TEST_CASE("setup survives the journey with zero bytes in the filter") {
  const setup_message sent{std::string("\x06\0\0\0\0\0\xff\x7f", 8), setup_unconfined};
  const auto received = decode_setup(encode(sent));
  REQUIRE(received);
  CHECK(received->filter == sent.filter);
  CHECK(received->flags == sent.flags);
}

TEST_CASE("what init answers survives the journey") {
  const auto ready = decode_ready(encode(ready_message{protocol_version, 1}));
  REQUIRE(ready);
  CHECK(ready->version == protocol_version);
  CHECK(ready->pid == 1);
  const auto failed = decode_failed(encode(failed_message{exec_stage::chdir, 2}));
  REQUIRE(failed);
  CHECK(failed->stage == exec_stage::chdir);
  CHECK(failed->error_number == 2);
  const auto exited = decode_exited(encode(exited_message{true, 9}));
  REQUIRE(exited);
  CHECK(exited->signalled);
  CHECK(exited->value == 9);
  CHECK(decode_number(encode_number(0xfffffffe)) == 0xfffffffe);
  const auto listening = decode_listening(encode(listening_message{{{1, false}, {65535, true}}}));
  REQUIRE(listening);
  REQUIRE(listening->ports.size() == 2);
  CHECK(listening->ports[0].number == 1);
  CHECK_FALSE(listening->ports[0].has_v6);
  CHECK(listening->ports[1].number == 65535);
  CHECK(listening->ports[1].has_v6);
  CHECK(listening->descriptors() == 3);
}

TEST_CASE("a payload cut at any byte or with a byte too many is refused") {
  check_exact_length(encode(full_exec()), [](std::string_view p) { return decode_exec(p).has_value(); });
  check_exact_length(encode(setup_message{std::string(64, 'x'), 0}),
                     [](std::string_view p) { return decode_setup(p).has_value(); });
  check_exact_length(encode(ready_message{1, 1}),
                     [](std::string_view p) { return decode_ready(p).has_value(); });
  check_exact_length(encode(failed_message{exec_stage::exec, 1}),
                     [](std::string_view p) { return decode_failed(p).has_value(); });
  check_exact_length(encode(exited_message{false, 0}),
                     [](std::string_view p) { return decode_exited(p).has_value(); });
  check_exact_length(encode(listening_message{{{3128, true}, {1080, false}}}),
                     [](std::string_view p) { return decode_listening(p).has_value(); });
  check_exact_length(encode_number(7), [](std::string_view p) { return decode_number(p).has_value(); });
}

TEST_CASE("a length that reaches beyond the payload, up to the largest number, is refused") {
  for (const std::uint32_t length : {5u, 0x7fffffffu, 0x80000000u, 0xfffffffcu, 0xffffffffu}) {
    CAPTURE(length);
    const auto lying = u32(length) + "true";
    CHECK_FALSE(decode_setup(lying + u32(0)));
    CHECK_FALSE(decode_exec(exec_payload(u32(0), u32(1) + lying, {}, {}, {}, {})));
    CHECK_FALSE(decode_exec(exec_payload(u32(0), good_argv, good_env, lying, {}, {})));
  }
}

TEST_CASE("a count that lies is refused, without memory being reserved for it") {
  REQUIRE(decode_exec(exec_payload(u32(0), good_argv, good_env, good_cwd, good_window, no_limits)));
  for (const std::uint32_t count : {2u, 0x40000000u, 0x40000001u, 0x7fffffffu, 0xffffffffu}) {
    CAPTURE(count);
    const auto lying = u32(count) + text("A=1");
    CHECK_FALSE(decode_exec(exec_payload(u32(0), lying, good_env, good_cwd, good_window, no_limits)));
    CHECK_FALSE(decode_exec(exec_payload(u32(0), good_argv, lying, good_cwd, good_window, no_limits)));
    CHECK_FALSE(decode_exec(exec_payload(u32(0), good_argv, good_env, good_cwd, good_window,
                                         u32(count) + u32(7) + std::string(8, '\0'))));
  }
}

TEST_CASE("an exec that init could not carry out literally is refused") {
  const auto decodes = [](const std::string& payload) { return decode_exec(payload).has_value(); };
  using namespace std::string_view_literals;
  SUBCASE("unknown flag") {
    CHECK_FALSE(decodes(exec_payload(u32(16), good_argv, good_env, good_cwd, good_window, no_limits)));
  }
  SUBCASE("no argv") {
    CHECK_FALSE(decodes(exec_payload(u32(0), list({}), good_env, good_cwd, good_window, no_limits)));
  }
  SUBCASE("a NUL, which would cut a word short") {
    CHECK_FALSE(
        decodes(exec_payload(u32(0), list({"true\0x"sv}), good_env, good_cwd, good_window, no_limits)));
    CHECK_FALSE(decodes(exec_payload(u32(0), good_argv, list({"A=\0"sv}), good_cwd, good_window, no_limits)));
    CHECK_FALSE(decodes(exec_payload(u32(0), good_argv, good_env, text("/\0"sv), good_window, no_limits)));
  }
  SUBCASE("an environment word without a name") {
    CHECK_FALSE(decodes(exec_payload(u32(0), good_argv, list({"A"}), good_cwd, good_window, no_limits)));
    CHECK_FALSE(decodes(exec_payload(u32(0), good_argv, list({"=1"}), good_cwd, good_window, no_limits)));
    CHECK_FALSE(decodes(exec_payload(u32(0), good_argv, list({""}), good_cwd, good_window, no_limits)));
  }
  SUBCASE("a relative or empty directory") {
    CHECK_FALSE(decodes(exec_payload(u32(0), good_argv, good_env, text("tmp"), good_window, no_limits)));
    CHECK_FALSE(decodes(exec_payload(u32(0), good_argv, good_env, text(""), good_window, no_limits)));
  }
  SUBCASE("a window larger than a terminal can be") {
    CHECK_FALSE(
        decodes(exec_payload(u32(0), good_argv, good_env, good_cwd, u32(65536) + u32(80), no_limits)));
    CHECK_FALSE(
        decodes(exec_payload(u32(0), good_argv, good_env, good_cwd, u32(24) + u32(65536), no_limits)));
  }
}

TEST_CASE("a filter that is no whole number of instructions, too long, or with unknown flags is refused") {
  CHECK(decode_setup(encode(setup_message{std::string(4096 * 8, 'x'), 0})));
  CHECK(decode_setup(encode(setup_message{"", 0})));
  CHECK_FALSE(decode_setup(encode(setup_message{std::string(7, 'x'), 0})));
  CHECK_FALSE(decode_setup(encode(setup_message{std::string(9, 'x'), 0})));
  CHECK_FALSE(decode_setup(encode(setup_message{std::string(4097 * 8, 'x'), 0})));
  CHECK_FALSE(decode_setup(encode(setup_message{"", 2})));
}

TEST_CASE("an answer with values that cannot be is refused") {
  CHECK_FALSE(decode_failed(u32(0) + u32(2)));
  CHECK(decode_failed(u32(7) + u32(2)));
  CHECK_FALSE(decode_failed(u32(8) + u32(2)));
  CHECK_FALSE(decode_failed(u32(6) + u32(0)));
  CHECK_FALSE(decode_failed(u32(6) + u32(4096)));
  CHECK_FALSE(decode_exited(u32(2) + u32(9)));
  CHECK_FALSE(decode_exited(u32(1) + u32(0)));
  CHECK_FALSE(decode_exited(u32(1) + u32(65)));
  CHECK(decode_exited(u32(0) + u32(255)));
  CHECK_FALSE(decode_exited(u32(0) + u32(256)));
  const auto port = u32(3128) + u32(0);
  CHECK(decode_listening(u32(4) + port + port + port + port));
  CHECK_FALSE(decode_listening(u32(5) + port + port + port + port + port));
  CHECK_FALSE(decode_listening(u32(0)));
  CHECK_FALSE(decode_listening(u32(0xffffffff) + port));
  CHECK_FALSE(decode_listening(u32(1) + u32(0) + u32(0)));
  CHECK_FALSE(decode_listening(u32(1) + u32(65536) + u32(0)));
  CHECK_FALSE(decode_listening(u32(1) + u32(3128) + u32(2)));
}
