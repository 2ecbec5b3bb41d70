#include "json_text.hpp"

namespace ccbox::violations {
namespace {

// The length of the UTF-8 character that `text` begins with; 0: none.
std::size_t character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xc2 ? 0
                             : lead < 0xe0 ? 2
                             : lead < 0xf0 ? 3
                             : lead < 0xf5 ? 4
                                           : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Overlong forms, surrogates, beyond the last plane.
  if (length == 3 && ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f))) return 0;
  if (length == 4 && ((lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f))) return 0;
  return length;
}

}  // namespace

void json_object::append_string(std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  body_ += '"';
  while (!bytes.empty()) {
    const auto lead = static_cast<unsigned char>(bytes[0]);
    std::size_t length = character(bytes);
    if (length == 0 || lead < 0x20 || lead == 0x7f) {
      body_ += "\\\\x";
      body_ += digits[lead >> 4];
      body_ += digits[lead & 15];
      length = 1;
    } else {
      if (lead == '"' || lead == '\\') body_ += '\\';
      body_ += bytes.substr(0, length);
    }
    bytes.remove_prefix(length);
  }
  body_ += '"';
}

json_object& json_object::text(std::string_view key, std::string_view value) {
  if (body_.size() > 1) body_ += ',';
  append_string(key);
  body_ += ':';
  append_string(value);
  return *this;
}

}  // namespace ccbox::violations
