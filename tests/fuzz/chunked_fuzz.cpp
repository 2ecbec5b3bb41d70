#include "plugins/egress/body_framing.hpp"

#include "fuzz/target.hpp"

namespace {

using namespace ccbox::egress;
using state = chunked_decoder::state;

struct outcome {
  state now = state::more;
  std::size_t consumed = 0;
  std::string data;
  bool operator==(const outcome&) const = default;
};

// In pieces of `piece` bytes, and on after an end, which must change nothing.
outcome decode(std::string_view input, std::size_t piece) {
  chunked_decoder decoder;
  outcome all;
  for (std::size_t at = 0; at < input.size(); at += piece) {
    const auto part = input.substr(at, piece);
    const bool over = all.now != state::more;
    const auto step = decoder.feed(part, all.data);
    fuzz::require(!over || (step.now == all.now && step.consumed == 0), "an end is an end");
    fuzz::require(step.now != state::more || step.consumed == part.size(),
                  "who wants more has taken everything");
    all.now = step.now;
    all.consumed += step.consumed;
  }
  return all;
}

void run(std::string_view input) {
  if (input.empty()) return;
  const auto whole = decode(input, input.size());
  for (const std::size_t piece : {1, 2, 5, 64})
    fuzz::require(decode(input, piece) == whole, "how bytes arrive does not matter");
  fuzz::require(whole.consumed <= input.size() && whole.data.size() <= whole.consumed, "no byte is invented");
  if (whole.now != state::done) return;

  fuzz::require(input.substr(0, whole.consumed).ends_with("\r\n"), "a body ends in CRLF");
  std::string framed;
  append_chunk(framed, whole.data);
  framed += last_chunk;
  fuzz::require(decode(framed + "x", framed.size() + 1) == outcome{state::done, framed.size(), whole.data},
                "framing anew keeps the bytes exactly");
}

const fuzz::registered target("chunked", run);

}  // namespace
