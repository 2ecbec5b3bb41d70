// What clients must show where the manifest says `auth: token`: 128 random bits of the session, in hex. It is
// never logged, and is compared in constant time.
#pragma once

#include <string>
#include <string_view>

namespace ccbox::egress {

class access_token {
 public:
  access_token() = default;      // no authentication: everything is accepted
  static access_token random();  // throws std::system_error if the kernel has no randomness

  bool required() const { return !hex_.empty(); }
  const std::string& hex() const { return hex_; }
  // A Proxy-Authorization field: Basic, user ccbox.
  bool accepts(std::string_view authorization) const;

 private:
  std::string hex_;
  std::string basic_;
};

}  // namespace ccbox::egress
