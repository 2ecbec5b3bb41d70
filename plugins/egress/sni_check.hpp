// Compares the server name that a tunnel's TLS asks for with the name that the client asked us to connect to:
// one address often serves many names, and policy decided about one.
//
// off: nothing is looked at. log: everything passes, differences are noted. enforce: another name, and a
// hello that servers read differently, are refused. A hello without a name passes in both, noted: it selects
// no other site than the address's default, and some clients send none. Whatever does not begin as TLS
// passes. A destination that is an address has no name to compare with.
//
// A server may ask for a second hello, and some take the name from that one. So until the server has answered
// with something else, every handshake record of the client's is looked at as the first one was; others pass.
#pragma once

#include <string>
#include <string_view>

#include "destination.hpp"
#include "server_answer.hpp"
#include "session_settings.hpp"

namespace ccbox::egress {

class sni_check {
 public:
  sni_check(destination to, sni_mode mode);

  enum class verdict { wait, pass, refuse };
  // `bytes`: what the client has sent and the check has not passed. pass: passed() of them may be forwarded.
  verdict look(std::string_view bytes);
  std::size_t passed() const { return passed_; }
  // A hello has passed and its answer is awaited: origin_sent() wants to know all that comes.
  bool watching() const { return greeted_ && !over(); }
  void origin_sent(std::string_view bytes) { answer_.take(bytes); }
  // Everything else passes.
  bool over() const { return over_ || answer_.given(); }

  bool needed() const { return mode_ != sni_mode::off && !to_.is_address(); }
  const destination& to() const { return to_; }
  // After a verdict, of it or an earlier one: "sni-mismatch", "sni-malformed", "sni-missing", or empty; and
  // the name as sent.
  std::string_view note() const { return note_; }
  const std::string& seen() const { return seen_; }

  // What a refused client is sent: a fatal alert, unrecognized_name.
  static constexpr std::string_view alert{"\x15\x03\x03\x00\x02\x02\x70", 7};

 private:
  verdict look_at_hello(std::string_view bytes);
  verdict look_past_record(std::string_view bytes);
  verdict objection(std::string_view note);
  destination to_;
  sni_mode mode_;
  server_answer answer_;
  std::size_t passed_ = 0;
  bool greeted_ = false, over_ = false;
  std::string_view note_;
  std::string seen_;
};

}  // namespace ccbox::egress
