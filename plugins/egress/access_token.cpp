#include "access_token.hpp"

#include <sys/random.h>

#include <cerrno>
#include <system_error>

#include "session_settings.hpp"

namespace ccbox::egress {

access_token access_token::random() {
  unsigned char bytes[16];
  if (::getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes))
    throw std::system_error(errno, std::generic_category(), "getrandom");
  access_token token;
  constexpr char digits[] = "0123456789abcdef";
  for (const auto byte : bytes) {
    token.hex_ += digits[byte >> 4];
    token.hex_ += digits[byte & 15];
  }
  token.basic_ = basic_authorization("ccbox:" + token.hex_);
  return token;
}

bool access_token::accepts(std::string_view authorization) const {
  if (!required()) return true;
  if (authorization.size() != basic_.size()) return false;
  unsigned difference = 0;
  constexpr std::size_t scheme = 5;  // "Basic", in any case
  for (std::size_t i = 0; i < basic_.size(); ++i) {
    const auto fold = i < scheme ? 0x20u : 0u;
    difference |= (static_cast<unsigned char>(authorization[i]) | fold) ^
                  (static_cast<unsigned char>(basic_[i]) | fold);
  }
  return difference == 0;
}

}  // namespace ccbox::egress
