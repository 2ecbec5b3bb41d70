// The header of a TLS record, as far as what is in front of encryption needs it.
#pragma once

#include <cstddef>
#include <string_view>

namespace ccbox::egress {

struct tls_record {
  static constexpr std::size_t header_bytes = 5;
  // Of content; ciphertext may have 256 on top.
  static constexpr std::size_t most_bytes = (1 << 14) + 256;
  enum content { change_cipher_spec = 20, alert, handshake, application_data };

  bool is_tls = false;  // a known type, a version 3.x, and a size that a record can have
  int type = 0;
  std::size_t size = 0;  // behind the header

  // `header`: at least header_bytes.
  static tls_record read(std::string_view header) {
    const auto byte = [&](std::size_t at) {
      return static_cast<unsigned>(static_cast<unsigned char>(header[at]));
    };
    tls_record out;
    out.type = static_cast<int>(byte(0));
    out.size = byte(3) << 8 | byte(4);
    out.is_tls = out.type >= change_cipher_spec && out.type <= application_data && byte(1) == 3 &&
                 out.size > 0 && out.size <= most_bytes;
    return out;
  }
};

}  // namespace ccbox::egress
