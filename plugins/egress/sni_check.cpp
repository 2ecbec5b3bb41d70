#include "sni_check.hpp"

#include "client_hello.hpp"

namespace ccbox::egress {

sni_check::sni_check(destination to, sni_mode mode) : to_(std::move(to)), mode_(mode) {}

sni_check::verdict sni_check::look(std::string_view bytes) {
  if (!needed()) return verdict::pass;
  auto peek = peek_client_hello(bytes);
  switch (peek.what) {
    case hello_peek::state::need_more:
      return verdict::wait;
    case hello_peek::state::not_tls:
      return verdict::pass;
    case hello_peek::state::no_name:
      note_ = "sni-missing";
      return verdict::pass;
    case hello_peek::state::malformed:
      note_ = "sni-malformed";
      break;
    case hello_peek::state::named: {
      seen_ = std::move(peek.name);
      const auto named = parse_host(seen_, to_.port);
      const auto* same = std::get_if<destination>(&named);
      if (same && *same == to_) return verdict::pass;
      note_ = "sni-mismatch";
      break;
    }
  }
  return mode_ == sni_mode::enforce ? verdict::refuse : verdict::pass;
}

}  // namespace ccbox::egress
