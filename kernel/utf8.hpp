// Well-formed UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ccbox {

// Length of the sequence at the start of `text` (not empty), its code point in `point`; 0 if it is malformed.
std::size_t utf8_sequence(std::string_view text, char32_t& point);

bool is_utf8(std::string_view text);

// `text` with each malformed byte replaced by U+FFFD: for JSON, where there is no way to write the byte
// itself.
std::string to_utf8(std::string_view text);

}  // namespace ccbox
