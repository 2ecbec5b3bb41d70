#include "plugins/egress/socks.hpp"

#include "fuzz/target.hpp"

namespace {

using namespace ccbox::egress;
using state = socks_parser::state;

struct outcome {
  state now = state::more;
  std::size_t consumed = 0;
  std::string replies, offending;
  std::string_view why;
  destination to;
  bool operator==(const outcome&) const = default;
};

constexpr std::size_t longest = 1 + 255 + 513 + 262 + 1;  // greeting, password, request

outcome feed(std::string_view input, const std::optional<std::string>& password, std::size_t piece) {
  socks_parser parser(password);
  outcome all;
  for (std::size_t at = 0; at < input.size(); at += piece) {
    const auto part = input.substr(at, piece);
    const bool over = all.now != state::more;
    const auto step = parser.feed(part);
    fuzz::require(!over || (step.now == all.now && step.consumed == 0 && step.reply.empty()),
                  "an end is an end");
    fuzz::require(step.now != state::more || step.consumed == part.size(),
                  "who wants more has taken everything");
    all.now = step.now;
    all.consumed += step.consumed;
    all.replies += step.reply;
  }
  all.why = parser.why();
  all.offending = parser.offending_bytes();
  if (all.now == state::request) all.to = parser.to();
  fuzz::require(all.consumed <= longest, "no client is listened to for long");
  if (all.now == state::refused) fuzz::require(!all.why.empty(), "a refusal says why");
  const std::size_t reply_bytes = parser.version() == socks_version::v5 ? 10 : 8;
  fuzz::require(parser.reply(socks_reply::not_allowed).size() == reply_bytes, "a reply has its length");
  return all;
}

void check(std::string_view input, const std::optional<std::string>& password) {
  const auto whole = feed(input, password, input.size());
  for (const std::size_t piece : {1, 2, 5})
    fuzz::require(feed(input, password, piece) == whole, "how bytes arrive does not matter");
  if (whole.now != state::request) return;
  const auto to = parse_authority(authority_text(whole.to), 0);
  fuzz::require(std::holds_alternative<destination>(to) && std::get<destination>(to) == whole.to,
                "a destination is canonical");
  if (password) fuzz::require(input.find(*password) != input.npos, "nobody passes without the password");
}

void run(std::string_view input) {
  if (input.empty()) return;
  check(input, {});
  check(input, "secret");
}

const fuzz::registered target("socks", run);

}  // namespace
