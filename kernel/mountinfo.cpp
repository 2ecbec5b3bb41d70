#include "mountinfo.hpp"

#include <algorithm>
#include <utility>

namespace ccbox {

namespace {

std::string_view take_word(std::string_view& line) {
  const auto end = std::min(line.find(' '), line.size());
  const auto word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

// The kernel writes blanks, newlines and backslashes as `\ooo`.
std::string unescaped(std::string_view text) {
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
        is_octal(text[i + 3])) {
      out.push_back(
          static_cast<char>((text[i + 1] - '0') << 6 | (text[i + 2] - '0') << 3 | (text[i + 3] - '0')));
      i += 3;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

}  // namespace

std::vector<mounted> parse_mountinfo(std::string_view text) {
  std::vector<mounted> out;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    for (int i = 0; i < 3; ++i)
      take_word(line);  // id, parent, device
    mounted one;
    one.root = unescaped(take_word(line));
    one.place = unescaped(take_word(line));
    while (!line.empty() && take_word(line) != "-") {
    }
    one.type = take_word(line);
    take_word(line);  // source
    one.options = take_word(line);
    if (!one.place.empty() && !one.type.empty()) out.push_back(std::move(one));
  }
  return out;
}

}  // namespace ccbox
