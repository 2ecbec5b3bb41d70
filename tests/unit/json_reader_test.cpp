#include "json_reader.hpp"

#include <doctest/doctest.h>

#include "support/result_printing.hpp"

using namespace ccbox;

namespace {

std::string refusal(std::string_view text) {
  const auto value = parse_json(text);
  if (value) return "";
  CHECK(value.error().code == error_code::invalid_argument);
  return value.error().what;
}

bool says(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("what is no JSON is refused with line, column and key") {
  CHECK(says(refusal(""), "not valid JSON"));
  CHECK(says(refusal("{\"a\": 1,\n \"b\": [1, x]}"), "b[1]: not valid JSON"));
  CHECK(says(refusal("{\"a\": 1,\n \"b\": [1, x]}"), "line 2"));
  CHECK(says(refusal("{} {}"), "not valid JSON"));
  for (const auto* text :
       {"{\"a\":1,}", "[1,]", "{'a':1}", "// c\n{}", "{}//c", "\xef\xbb\xbf{}", "NaN", "Infinity", "01", "+1",
        ".5", "{\"a\" 1}", "\"a\nb\"", "tru", "{\"a\":1", "[", "\"", "{\"a\":\"\\ud800\"}"}) {
    CAPTURE(text);
    CHECK(says(refusal(text), "not valid JSON"));
  }
}

TEST_CASE("JSON text must be UTF-8") {
  for (const std::string text :
       {"\"\xff\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"caf\xe9\"", "{\"\xff\":1}"})
    CHECK(says(refusal(text), "not valid JSON: not UTF-8 text (line 1, column "));
  CHECK(says(refusal("{\n \"\xff\":1}"), "(line 2, column 3)"));
  CHECK(says(refusal("\xef\xbb\xbf{}"), "byte order mark"));
  CHECK(parse_json("\"caf\xc3\xa9\""));
}

TEST_CASE("duplicate keys are found in every object of the document and nowhere else") {
  CHECK(says(refusal(R"({"a":1,"a":2})"), "a: duplicate key"));
  CHECK(says(refusal(R"([[{"a":[{"b":1,"c":{"d":1,"d":1}}]}]])"), "[0][0].a[0].c.d: duplicate key"));
  CHECK(says(refusal(R"({"x y":1,"x y":1})"), "'x y': duplicate key"));
  CHECK(says(refusal(R"({"":1,"":1})"), "duplicate key"));
  CHECK(refusal(R"([{"a":{"a":[{"a":1},{"a":1}]}},{"a":1}])") == "");
}

TEST_CASE("a key that could forge a log line is escaped in the message") {
  const auto message = refusal("{\"a\\n\\u001b[31m\":1,\"a\\n\\u001b[31m\":1}");
  CHECK(says(message, "duplicate key"));
  CHECK(message.find('\n') == std::string::npos);
  CHECK(message.find('\x1b') == std::string::npos);
}

TEST_CASE("the size and depth limits hold to the byte and to the level") {
  json_limits limits{10, 3};
  CHECK(parse_json("[1,2,3,44]", limits));
  CHECK(parse_json("[1,2,3,444]", limits).error().code == error_code::too_large);
  limits.bytes = 100;
  CHECK(parse_json("[[[1]]]", limits));
  CHECK(parse_json("{\"a\":{\"b\":{}}}", limits));
  const auto deep = parse_json("{\"a\":[{\"b\":[]}]}", limits);
  REQUIRE(!deep);
  CHECK(deep.error().code == error_code::too_large);
  CHECK(deep.error().what == "a[0].b: nested deeper than 3 levels");
}

TEST_CASE("the first error of an object sticks and later reads change nothing") {
  const auto value = parse_json(R"({"name": 1, "count": 5, "flag": "yes"})");
  REQUIRE(value);
  std::optional<error> failure;
  json_object_reader reader(*value, "it", failure);
  std::string name = "old";
  std::uint64_t count = 7;
  reader.required("name", name);
  reader.required("count", count);
  reader.no_other_keys();
  REQUIRE(failure);
  CHECK(failure->what == "it.name: must be a string, not a number");
  CHECK(name == "old");
  CHECK(count == 7);
}

TEST_CASE("whole numbers are read over their full range") {
  const auto value = parse_json(R"({"a": 18446744073709551615, "b": 0, "c": 9223372036854775807})");
  REQUIRE(value);
  std::optional<error> failure;
  json_object_reader reader(*value, "", failure);
  std::uint64_t a = 0, b = 1, c = 0;
  reader.required("a", a);
  reader.required("b", b);
  reader.required("c", c);
  reader.no_other_keys();
  CHECK(!failure);
  CHECK(a == UINT64_MAX);
  CHECK(b == 0);
  CHECK(c == INT64_MAX);
}
