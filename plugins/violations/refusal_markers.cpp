#include "refusal_markers.hpp"

#include <cstring>

namespace ccbox::violations {
namespace {

// The words without their first letter, which is written both ways.
constexpr std::string_view markers[] = {"ermission denied", "peration not permitted", "EACCES", "EPERM"};
constexpr std::size_t first_name = 2;

std::size_t find(std::string_view text, std::string_view word, std::size_t from) {
  if (from >= text.size()) return text.npos;
  const void* at = ::memmem(text.data() + from, text.size() - from, word.data(), word.size());
  return at ? static_cast<std::size_t>(static_cast<const char*>(at) - text.data()) : text.npos;
}

bool is_word_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool stands_alone(std::string_view text, std::size_t begin, std::size_t length) {
  const bool left = begin == 0 || !is_word_byte(text[begin - 1]);
  return left && (begin + length == text.size() || !is_word_byte(text[begin + length]));
}

bool has_first_letter(std::string_view text, std::size_t begin, std::size_t which) {
  if (begin == 0) return false;
  const char letter = text[begin - 1];
  return which == 0 ? letter == 'P' || letter == 'p' : letter == 'O' || letter == 'o';
}

}  // namespace

refusal_markers::refusal_markers(std::string_view text) : text_(text) {}

refusal_markers::place refusal_markers::next(std::size_t from) {
  place first;
  for (std::size_t i = 0; i < found_.size(); ++i) {
    const bool is_name = i >= first_name;
    const std::size_t ahead = is_name ? 0 : 1;  // of what was found: the first letter
    auto& at = found_[i];
    const auto fits = [&] {
      if (is_name) return stands_alone(text_, at, markers[i].size());
      return has_first_letter(text_, at, i);
    };
    if (at == 0 && from == 0) at = find(text_, markers[i], 0);
    while (at != text_.npos && (at < from + ahead || !fits()))
      at = find(text_, markers[i], at < from + ahead ? from + ahead : at + 1);
    if (at == text_.npos || at - ahead >= first.begin) continue;
    first = {at - ahead, markers[i].size() + ahead, is_name};
  }
  return first;
}

}  // namespace ccbox::violations
