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

// False for what would move the cursor, colour a line or reorder it: control characters, bidirectional
// controls, invisible and annotating ones.
bool is_printable(char32_t point);

// `text` with each character beyond ASCII that is not printable written as JSON escapes it, \u202e, so that a
// JSON text means the same afterwards; malformed bytes become \ufffd.
std::string json_printable(std::string_view text);

}  // namespace ccbox
