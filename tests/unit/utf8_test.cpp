#include "utf8.hpp"

#include <doctest/doctest.h>

using namespace ccbox;

TEST_CASE("well-formed sequences of every length are UTF-8") {
  for (const std::string text : {"", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                                 "\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    CHECK(is_utf8(text));
    CHECK(to_utf8(text) == text);
  }
  CHECK(is_utf8(std::string_view("a\0b", 3)));
}

TEST_CASE("overlong forms, surrogates, truncation and stray bytes are not UTF-8") {
  for (const std::string text :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xff", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "a\xc3"})
    CHECK(!is_utf8(text));
}

TEST_CASE("each malformed byte becomes one replacement character and the rest stays") {
  CHECK(to_utf8("a\xff\xfe"
                "b\xc3\xbc") ==
        "a\xef\xbf\xbd\xef\xbf\xbd"
        "b\xc3\xbc");
  CHECK(is_utf8(to_utf8("\xf0\x9f\x98\xed\xa0\x80")));
}

TEST_CASE("in JSON what is not printable becomes an escape that means the same, and malformed bytes U+FFFD") {
  CHECK(json_printable("{\"a\": \"b\xc3\xbc\\n\"}") == "{\"a\": \"b\xc3\xbc\\n\"}");
  CHECK(json_printable("\xe2\x80\xae\xc2\x85\x7f") == "\\u202e\\u0085\\u007f");
  CHECK(json_printable("\xf3\xa0\x81\x81") == "\\udb40\\udc41");
  CHECK(json_printable("a\xff\xed\xa0\x80") == "a\\ufffd\\ufffd\\ufffd\\ufffd");
}
