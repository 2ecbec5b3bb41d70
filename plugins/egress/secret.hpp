// Comparing what a client says with a secret: how long it takes does not tell how much of it was right.
#pragma once

#include <cstddef>
#include <string_view>

namespace ccbox::egress {

// Takes as long as `said` is long, whatever is in the two.
inline bool same_secret(std::string_view said, std::string_view secret) {
  volatile unsigned difference = said.size() == secret.size() ? 0 : 1;
  for (std::size_t i = 0; i < said.size(); ++i) {
    const char expected = secret.empty() ? '\0' : secret[i % secret.size()];
    difference = difference | static_cast<unsigned char>(said[i] ^ expected);
  }
  return difference == 0;
}

}  // namespace ccbox::egress
