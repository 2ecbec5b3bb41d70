#include "result.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

using namespace ccbox;

TEST_CASE("quoted leaves printable text and UTF-8 alone") {
  CHECK(quoted("plain") == "'plain'");
  CHECK(quoted("b\xc3\xbc"
               "cher") ==
        "'b\xc3\xbc"
        "cher'");
}

TEST_CASE("quoted escapes what could move the cursor, break the line or fake a quote") {
  CHECK(quoted("a\nb\tc\r") == "'a\\nb\\tc\\r'");
  CHECK(quoted("\x1b[31m") == "'\\x1b[31m'");
  CHECK(quoted("it's") == "'it\\'s'");
  CHECK(quoted("back\\slash") == "'back\\\\slash'");
  CHECK(quoted(std::string_view("\0", 1)) == "'\\x00'");
}

TEST_CASE("quoted escapes bytes that are no UTF-8 and characters that reorder text") {
  CHECK(quoted("\xff\xfe") == "'\\xff\\xfe'");
  CHECK(quoted("\xc0\xaf") == "'\\xc0\\xaf'");           // overlong
  CHECK(quoted("\xe2\x80\xae") == "'\\xe2\\x80\\xae'");  // right-to-left override
  CHECK(quoted("\xc2\x9b") == "'\\xc2\\x9b'");           // C1 control
}

TEST_CASE("a failed system call names itself, its object and the errno") {
  const auto e = system_error("open", "/etc/shadow", EACCES, "run as root");
  CHECK(e.code == error_code::permission_denied);
  CHECK(e.what == "open '/etc/shadow': Permission denied (EACCES)");
  CHECK(e.hint == "run as root");
}

TEST_CASE("a limit of this process that ran out has a remedy whatever the call was for") {
  CHECK(system_error("socketpair", "", EMFILE).hint.starts_with("raise the limit of open files"));
  CHECK(system_error("clone", "x", EMFILE, "be root").hint.starts_with("raise the limit of open files"));
  CHECK(system_error("write", "mask", EFBIG).hint.starts_with("raise the limit of file sizes"));
}

TEST_CASE("is_utf8 takes well-formed text only") {
  CHECK(is_utf8(""));
  CHECK(
      is_utf8("b\xc3\xbc"
              "cher \xf0\x9f\x8c\xb3"));
  CHECK(is_utf8(std::string_view("a\0b", 3)));
  CHECK_FALSE(is_utf8("\xff"));
  CHECK_FALSE(is_utf8("\xc0\xaf"));          // overlong
  CHECK_FALSE(is_utf8("\xed\xa0\x80"));      // surrogate
  CHECK_FALSE(is_utf8("\xf4\x90\x80\x80"));  // past U+10FFFF
  CHECK_FALSE(is_utf8("cut \xe2\x82"));
}

TEST_CASE("printable escapes as quoted does, but leaves quotes and backslashes alone") {
  CHECK(printable("it's C:\\x\n\x1b[0m") == "it's C:\\x\\n\\x1b[0m");
}

TEST_CASE("docs/errors.md explains every code") {
  std::ifstream file(CCBOX_TEST_SOURCE_DIR "/docs/errors.md");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  REQUIRE(!text.empty());
  // The last one; a code after it would not be looked for.
  constexpr auto last = error_code::failed;
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    const auto name = std::string(to_string(static_cast<error_code>(i)));
    CAPTURE(name);
    CHECK(text.find("| `" + name + "` |") != std::string::npos);
    CHECK(text.find("### `" + name + "`") != std::string::npos);
  }
}
