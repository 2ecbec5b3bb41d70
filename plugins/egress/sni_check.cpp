#include "sni_check.hpp"

#include "client_hello.hpp"
#include "tls_record.hpp"

namespace ccbox::egress {

sni_check::sni_check(destination to, sni_mode mode) : to_(std::move(to)), mode_(mode) {}

sni_check::verdict sni_check::look(std::string_view bytes) {
  passed_ = bytes.size();
  if (!needed() || over()) return verdict::pass;
  if (bytes.empty()) return verdict::wait;
  return greeted_ && bytes.front() != tls_record::handshake ? look_past_record(bytes) : look_at_hello(bytes);
}

sni_check::verdict sni_check::look_at_hello(std::string_view bytes) {
  auto peek = peek_client_hello(bytes);
  switch (peek.what) {
    case hello_peek::state::need_more:
      return verdict::wait;
    case hello_peek::state::not_tls:
      if (greeted_) return objection("sni-malformed");
      over_ = true;
      return verdict::pass;
    case hello_peek::state::malformed:
      return objection("sni-malformed");
    case hello_peek::state::no_name:
      note_ = "sni-missing";
      break;
    case hello_peek::state::named: {
      seen_ = std::move(peek.name);
      const auto named = parse_host(seen_, to_.port);
      const auto* same = std::get_if<destination>(&named);
      if (!same || *same != to_) return objection("sni-mismatch");
      break;
    }
  }
  greeted_ = true;
  passed_ = peek.size;
  return verdict::pass;
}

sni_check::verdict sni_check::look_past_record(std::string_view bytes) {
  if (bytes.size() < tls_record::header_bytes) return verdict::wait;
  const auto record = tls_record::read(bytes);
  if (!record.is_tls) return objection("sni-malformed");
  passed_ = tls_record::header_bytes + record.size;
  return bytes.size() < passed_ ? verdict::wait : verdict::pass;
}

sni_check::verdict sni_check::objection(std::string_view note) {
  note_ = note;
  over_ = true;
  return mode_ == sni_mode::enforce ? verdict::refuse : verdict::pass;
}

}  // namespace ccbox::egress
