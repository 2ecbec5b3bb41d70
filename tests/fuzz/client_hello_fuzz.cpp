#include <string>

#include "fuzz/target.hpp"
#include "plugins/egress/client_hello.hpp"

namespace {

using namespace ccbox::egress;
using state = hello_peek::state;

// The same handshake bytes in records of one byte each; empty: not a sequence of whole handshake records.
std::string in_small_records(std::string_view records) {
  std::string out;
  while (!records.empty()) {
    if (records.size() < 5 || records[0] != 22 || records[1] != 3) return {};
    const auto size = static_cast<std::size_t>(static_cast<unsigned char>(records[3]) << 8 |
                                               static_cast<unsigned char>(records[4]));
    if (size == 0 || size > 1 << 14 || records.size() < 5 + size) return {};
    for (const char c : records.substr(5, size))
      out += "\x16\x03\x01" + std::string("\0\x01", 2) + c;
    records.remove_prefix(5 + size);
  }
  return out;
}

void run(std::string_view input) {
  const auto whole = peek_client_hello(input);
  fuzz::require((whole.what == state::named) != whole.name.empty(), "a name is there when it says so");
  if (whole.what == state::named)
    fuzz::require(input.size() > whole.name.size(), "the name is no longer than what it came in");
  fuzz::require(whole.size <= input.size(), "the hello is no longer than what it came in");
  if (input.size() >= max_client_hello_bytes)
    fuzz::require(whole.what != state::need_more, "it waits for the limit at most");

  bool decided = false;
  const std::size_t step = 1 + input.size() / 256;
  for (std::size_t size = 0; size < input.size(); size += step) {
    const auto part = peek_client_hello(input.substr(0, size));
    fuzz::require(!decided || part.what != state::need_more, "what was decided stays decided");
    if (part.what == state::need_more) continue;
    decided = true;
    fuzz::require(part.what == whole.what && part.name == whole.name, "more bytes change no verdict");
  }

  const auto small = in_small_records(input);
  // Malformed may be that something shares the hello's record, which no small one can.
  if (small.empty() || small.size() >= max_client_hello_bytes || whole.what == state::malformed) return;
  const auto again = peek_client_hello(small);
  fuzz::require(again.what == whole.what && again.name == whole.name, "fragments of any size say the same");
}

const fuzz::registered target("client_hello", run);

}  // namespace
