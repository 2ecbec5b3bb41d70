#include "fuzz/target.hpp"
#include "utf8.hpp"

namespace {

int hexadecimal(char digit) {
  return digit <= '9' ? digit - '0' : digit - 'a' + 10;
}

// The inverse: what quoted() shows says exactly which bytes there were.
std::string unquoted(std::string_view shown) {
  fuzz::require(shown.size() >= 2 && shown.front() == '\'' && shown.back() == '\'', "it is in quotes");
  shown = shown.substr(1, shown.size() - 2);
  std::string out;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    fuzz::require(shown[i] != '\'', "a quote inside is escaped");
    if (shown[i] != '\\') {
      out += shown[i];
      continue;
    }
    fuzz::require(++i < shown.size(), "an escape is complete");
    switch (shown[i]) {
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      case 'r':
        out += '\r';
        break;
      case 'x':
        fuzz::require(i + 2 < shown.size(), "a hexadecimal escape is complete");
        out += static_cast<char>(hexadecimal(shown[i + 1]) * 16 + hexadecimal(shown[i + 2]));
        i += 2;
        break;
      default:
        fuzz::require(shown[i] == '\'' || shown[i] == '\\', "no other escape is used");
        out += shown[i];
    }
  }
  return out;
}

void require_harmless(std::string_view shown) {
  fuzz::require(ccbox::is_utf8(shown), "it is UTF-8");
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const auto byte = static_cast<unsigned char>(shown[i]);
    fuzz::require(byte >= 0x20 && byte != 0x7f, "no control character is left");
    const bool c1 = byte == 0xc2 && static_cast<unsigned char>(shown[i + 1]) < 0xa0;
    fuzz::require(!c1, "no control character of the second set is left");
    fuzz::require(shown.substr(i, 3) != "\xe2\x80\xae" && shown.substr(i, 3) != "\xe2\x80\x8b",
                  "nothing is left that reorders or hides text");
  }
}

void run(std::string_view text) {
  const auto shown = ccbox::quoted(text);
  require_harmless(shown);
  fuzz::require(unquoted(shown) == text, "quoting loses nothing");
  const auto bare = ccbox::printable(text);
  require_harmless(bare);
  fuzz::require(ccbox::printable(bare) == bare, "what is printable stays as it is");
  const auto repaired = ccbox::to_utf8(text);
  fuzz::require(ccbox::is_utf8(repaired), "to_utf8 gives UTF-8");
  fuzz::require(ccbox::is_utf8(text) == (repaired == text),
                "to_utf8 changes what is malformed and nothing else");
}

const fuzz::registered target("quoted", run);

}  // namespace
