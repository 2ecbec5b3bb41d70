// Compares the server name that a tunnel's TLS asks for with the name that the client asked us to connect to:
// one address often serves many names, and policy decided about one.
//
// off: nothing is looked at. log: everything passes, differences are noted. enforce: another name, and a
// hello that servers read differently, are refused. A hello without a name passes in both, noted: it selects
// no other site than the address's default, and some clients send none. Whatever is not TLS passes. A
// destination that is an address has no name to compare with.
#pragma once

#include <string>
#include <string_view>

#include "destination.hpp"
#include "session_settings.hpp"

namespace ccbox::egress {

class sni_check {
 public:
  sni_check(destination to, sni_mode mode);

  enum class verdict { wait, pass, refuse };
  // `bytes`: all that the client has sent so far, none of it forwarded.
  verdict look(std::string_view bytes);

  bool needed() const { return mode_ != sni_mode::off && !to_.is_address(); }
  const destination& to() const { return to_; }
  // After a verdict: "sni-mismatch", "sni-malformed", "sni-missing", or empty; and the name as sent.
  std::string_view note() const { return note_; }
  const std::string& seen() const { return seen_; }

  // What a refused client is sent: a fatal alert, unrecognized_name.
  static constexpr std::string_view alert{"\x15\x03\x03\x00\x02\x02\x70", 7};

 private:
  destination to_;
  sni_mode mode_;
  std::string_view note_;
  std::string seen_;
};

}  // namespace ccbox::egress
