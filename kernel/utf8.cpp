#include "utf8.hpp"

#include <algorithm>

namespace ccbox {

std::size_t utf8_sequence(std::string_view text, char32_t& point) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  std::size_t length = lead < 0x80         ? 1
                       : (lead >> 5) == 6  ? 2
                       : (lead >> 4) == 14 ? 3
                       : (lead >> 3) == 30 ? 4
                                           : 0;
  if (length == 0 || text.size() < length) return 0;
  if (length == 1) {
    point = lead;
    return 1;
  }
  point = lead & (0x7f >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    point = (point << 6) | (byte(i) & 0x3f);
  }
  constexpr char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (point < smallest[length] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return 0;
  return length;
}

bool is_utf8(std::string_view text) {
  char32_t point = 0;
  while (!text.empty()) {
    const bool ascii = static_cast<unsigned char>(text.front()) < 0x80;
    const std::size_t length = ascii ? 1 : utf8_sequence(text, point);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string to_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  char32_t point = 0;
  while (!text.empty()) {
    const std::size_t length = utf8_sequence(text, point);
    out += length > 0 ? text.substr(0, length) : std::string_view("\xef\xbf\xbd");
    text.remove_prefix(length > 0 ? length : 1);
  }
  return out;
}

bool is_printable(char32_t point) {
  if (point < 0x20 || (point >= 0x7f && point < 0xa0)) return false;
  if (point == 0x061c || (point >= 0x200b && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e))
    return false;
  if (point >= 0x2060 && point <= 0x206f) return false;
  return point != 0xfeff && !(point >= 0xfff9 && point <= 0xfffb) && !(point >= 0xe0000 && point <= 0xe007f);
}

namespace {

void append_json_escape(std::string& out, char32_t unit) {
  constexpr char hex[] = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4)
    out += hex[(unit >> shift) & 15];
}

}  // namespace

std::string json_printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    char32_t point = 0;
    const std::size_t length = utf8_sequence(text, point);
    if (length == 0) {
      append_json_escape(out, 0xfffd);
    } else if (point < 0x7f || is_printable(point)) {
      out += text.substr(0, length);
    } else if (point > 0xffff) {
      append_json_escape(out, 0xd800 + ((point - 0x10000) >> 10));
      append_json_escape(out, 0xdc00 + ((point - 0x10000) & 0x3ff));
    } else {
      append_json_escape(out, point);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

}  // namespace ccbox
