#include "plugins/violations/line_reader.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <vector>

using namespace ccbox::violations;

namespace {

struct collected {
  line_reader reader;
  std::vector<std::string> lines;
  line_reader::sink sink = [this](std::string_view line) { lines.emplace_back(line); };

  void add(std::string_view bytes) { reader.add(bytes, sink); }
  void end() { reader.end(sink); }
};

}  // namespace

TEST_CASE("of all lines those come that speak of a refusal") {
  collected c;
  c.add("one\ncat: x: Permission denied\ntwo\nEPERM here\nEACCESS\nls: y: permission denied\n");
  CHECK(c.lines ==
        std::vector<std::string>{"cat: x: Permission denied", "EPERM here", "ls: y: permission denied"});
}

TEST_CASE("a line that comes in pieces is one line, wherever it is cut") {
  const std::string text = "before\ncat: x: Permission denied\nafter\nsh: Operation not permitted";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    CAPTURE(cut);
    collected c;
    c.add(text.substr(0, cut));
    c.add(text.substr(cut));
    c.end();
    CHECK(c.lines == std::vector<std::string>{"cat: x: Permission denied", "sh: Operation not permitted"});
  }
  collected bytewise;
  for (const char c : text)
    bytewise.add({&c, 1});
  bytewise.end();
  CHECK(bytewise.lines.size() == 2);
}

TEST_CASE("a line ends at a carriage return, too") {
  collected c;
  c.add("10%\rcat: x: Permission denied\r\n20%\r");
  CHECK(c.lines == std::vector<std::string>{"cat: x: Permission denied"});
}

TEST_CASE("a line without an end comes when the command has ended, once") {
  collected c;
  c.add("cat: x: Permission denied");
  CHECK(c.lines.empty());
  c.end();
  c.end();
  CHECK(c.lines.size() == 1);
}

TEST_CASE("of a line that is too long nothing is read, and the next one is whole") {
  const std::string words = "Permission denied";
  collected c;
  c.add(std::string(line_reader::most_bytes, 'x') + words + "\nEPERM\n");
  CHECK(c.lines == std::vector<std::string>{"EPERM"});
  for (unsigned i = 0; i < 100; ++i)
    c.add(std::string(100, 'x') + words);
  c.add("\n" + words + "\n");
  CHECK(c.lines == std::vector<std::string>{"EPERM", words});
  c.add(std::string(line_reader::most_bytes - words.size(), 'x') + words + "\n");
  CHECK(c.lines.size() == 3);
}

TEST_CASE("bytes that are no text do no harm") {
  collected c;
  std::string bytes;
  for (unsigned i = 0; i < 4096; ++i)
    bytes += static_cast<char>(i * 7);
  c.add(bytes);
  c.add(std::string("\0Permission denied\0\n", 20));
  REQUIRE(c.lines.size() == 1);
}

TEST_CASE("the work is linear in what was written, whatever it is") {
  std::string text;
  while (text.size() < (4u << 20))
    text += "Permission denied\n";
  collected c;
  std::size_t lines = 0;
  const auto begun = std::chrono::steady_clock::now();
  c.reader.add(text, [&](std::string_view) { ++lines; });
  CHECK(lines == text.size() / 18);
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(5));
}
