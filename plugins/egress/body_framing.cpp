#include "body_framing.hpp"

#include <algorithm>
#include <charconv>

namespace ccbox::egress {
namespace {

constexpr std::size_t max_line_bytes = 4 * 1024;
constexpr std::size_t max_trailer_bytes = 16 * 1024;
constexpr unsigned max_digits = 16;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7f;
}

}  // namespace

chunked_decoder::step chunked_decoder::feed(std::string_view input, std::string& data) {
  std::size_t at = 0;
  while (at < input.size() && part_ != part::done && part_ != part::malformed) {
    if (part_ != part::data) {
      part_ = after(input[at++]);
      continue;
    }
    const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size() - at));
    data.append(input.substr(at, taken));
    at += taken;
    left_ -= taken;
    if (left_ == 0) part_ = part::data_cr;
  }
  if (part_ == part::done) return {state::done, at};
  return {part_ == part::malformed ? state::malformed : state::more, at};
}

chunked_decoder::part chunked_decoder::after(char c) {
  switch (part_) {
    case part::size:
      return after_size(c);
    case part::extension:
      if (c == '\r') return part::size_lf;
      return is_control(c) || ++line_bytes_ > max_line_bytes ? part::malformed : part::extension;
    case part::size_lf:
      if (c != '\n') return part::malformed;
      line_bytes_ = 0;
      digits_ = 0;
      return left_ == 0 ? part::trailer : part::data;
    case part::data_cr:
      return c == '\r' ? part::data_lf : part::malformed;
    case part::data_lf:
      return c == '\n' ? part::size : part::malformed;
    case part::trailer:
      if (++trailer_bytes_ > max_trailer_bytes) return part::malformed;
      if (c == '\r') return part::trailer_lf;
      return is_control(c) || ++line_bytes_ > max_line_bytes ? part::malformed : part::trailer;
    case part::trailer_lf:
      return c == '\n' ? after_trailer_line() : part::malformed;
    case part::data:
    case part::done:
    case part::malformed:
      break;
  }
  return part::malformed;
}

chunked_decoder::part chunked_decoder::after_size(char c) {
  if (const int digit = hex_digit(c); digit >= 0) {
    if (++digits_ > max_digits) return part::malformed;
    ++line_bytes_;
    left_ = left_ << 4 | static_cast<unsigned>(digit);
    return part::size;
  }
  if (digits_ == 0) return part::malformed;
  if (c == '\r') return part::size_lf;
  ++line_bytes_;
  return c == ';' ? part::extension : part::malformed;
}

chunked_decoder::part chunked_decoder::after_trailer_line() {
  const bool empty = line_bytes_ == 0;
  line_bytes_ = 0;
  return empty ? part::done : part::trailer;
}

void append_chunk(std::string& out, std::string_view data) {
  if (data.empty()) return;
  char size[16];
  const auto end = std::to_chars(size, size + sizeof size, data.size(), 16).ptr;
  out.append(size, end).append("\r\n").append(data).append("\r\n");
}

}  // namespace ccbox::egress
