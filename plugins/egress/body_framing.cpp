#include "body_framing.hpp"

#include <charconv>

namespace ccbox::egress {

void append_chunk(std::string& out, std::string_view data) {
  if (data.empty()) return;
  char size[16];
  const auto end = std::to_chars(size, size + sizeof size, data.size(), 16).ptr;
  out.append(size, end).append("\r\n").append(data).append("\r\n");
}

}  // namespace ccbox::egress
