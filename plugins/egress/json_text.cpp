#include "json_text.hpp"

namespace ccbox::egress {
namespace {

void append_string(std::string& out, std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  out += '"';
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"') {
      out += "\\\"";
    } else if (byte >= 0x20 && byte < 0x7f && c != '\\') {
      out += c;
    } else {
      out += "\\\\x";
      out += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
  out += '"';
}

}  // namespace

void json_object::key(std::string_view name) {
  if (body_.size() > 1) body_ += ',';
  append_string(body_, name);
  body_ += ':';
}

json_object& json_object::text(std::string_view name, std::string_view value) {
  key(name);
  append_string(body_, value);
  return *this;
}

json_object& json_object::number(std::string_view name, std::uint64_t value) {
  key(name);
  body_ += std::to_string(value);
  return *this;
}

}  // namespace ccbox::egress
