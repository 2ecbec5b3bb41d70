#include "yaml_document.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>

#include "support/temporary_directory.hpp"
#include "unique_fd.hpp"

using namespace ccbox;

namespace {

yaml_value parsed(std::string_view text) {
  auto value = load_yaml_text(text, "a.yaml");
  REQUIRE_MESSAGE(value.has_value(), value.error().what);
  return *value;
}

std::string refusal_of(std::string_view text) {
  const auto value = load_yaml_text(text, "a.yaml");
  return value.has_value() ? "accepted" : value.error().what;
}

}  // namespace

TEST_CASE("values keep their order, their text as written and their place") {
  const auto root = parsed("# comment\nname: 1.10\nlist:\n  - a\n  - 'b c'\n");
  CHECK(root.type() == yaml_value::kind::mapping);
  CHECK(*root["name"].as_string() == "1.10");
  CHECK(root["name"].where() == "a.yaml:2:7");
  CHECK(*root["list"].strings() == std::vector<std::string>{"a", "b c"});
  CHECK((*root["list"].items())[1].where() == "a.yaml:5:5");
  const auto members = *root.members();
  REQUIRE(members.size() == 2);
  CHECK(members[0].first == "name");
  CHECK(members[1].first == "list");
}

TEST_CASE("values outlive the document that they came from") {
  std::optional<yaml_value> inner;
  {
    const auto root = parsed("a: {b: c}");
    inner = root["a"];
  }
  CHECK(*(*inner)["b"].as_string() == "c");
  CHECK(inner->where() == "a.yaml:1:4");
}

TEST_CASE("an empty file, an empty value and a missing member are null") {
  CHECK(parsed("").is_null());
  CHECK(parsed("# only a comment\n").is_null());
  const auto root = parsed("a:\nb: 1\n");
  CHECK(root["a"].is_null());
  CHECK(root["a"].where() == "a.yaml:1:1");  // not where the parser noticed, which is b
  CHECK(root["nope"].is_null());
  CHECK(root["nope"].where() == "a.yaml:1:1");
  CHECK(root.has("a"));
  CHECK_FALSE(root.has("nope"));
  CHECK(root["a"].items()->empty());
  CHECK(root["a"].members()->empty());
}

TEST_CASE("booleans are true and false only") {
  CHECK(*parsed("true").as_bool());
  CHECK_FALSE(*parsed("false").as_bool());
  for (const auto* text : {"yes", "on", "1", "True", "TRUE", "'true'", "~", "[true]"})
    CHECK_MESSAGE(!parsed(text).as_bool().has_value(), text);
  CHECK(parsed("a: yes")["a"].as_bool().error().what == "a.yaml:1:4: expected true or false, found 'yes'");
}

TEST_CASE("integers are plain decimal numbers in range") {
  CHECK(*parsed("-12").as_integer() == -12);
  CHECK(*parsed("0").as_integer() == 0);
  CHECK(*parsed("9223372036854775807").as_integer() == INT64_MAX);
  for (const auto* text :
       {"9223372036854775808", "1.5", "0x10", "010", "1e3", "'1'", "+1", "1 2", "-", "a", "~"})
    CHECK_MESSAGE(!parsed(text).as_integer().has_value(), text);
}

TEST_CASE("a value of another type than asked for is an error that says both") {
  const auto root = parsed("text: a\nlist: [a]\nmap: {a: b}\n");
  CHECK(root["list"].as_string().error().what == "a.yaml:2:7: expected a text, found a list");
  CHECK(root["text"].items().error().what == "a.yaml:1:7: expected a list, found a single value");
  CHECK(root["text"].members().error().what == "a.yaml:1:7: expected a mapping, found a single value");
  CHECK(root["map"].strings().error().what == "a.yaml:3:6: expected a list, found a mapping");
  CHECK(root["none"].as_string().error().what == "a.yaml:1:1: expected a text, found nothing");
  CHECK(parsed("[[a]]").strings().error().what == "a.yaml:1:2: expected a text, found a list");
}

TEST_CASE("an unknown key is an error at its place that lists the known ones") {
  const auto root = parsed("path: x\n\nenbled: true\n");
  CHECK(root.require_keys({"path", "enbled"}).has_value());
  const auto bad = root.require_keys({"path", "enabled"});
  REQUIRE(bad.has_error());
  CHECK(bad.error().code == error_code::invalid_argument);
  CHECK(bad.error().what == "a.yaml:3:1: unknown key 'enbled'");
  CHECK(bad.error().hint == "known keys: path, enabled");
  CHECK(parsed("[]").require_keys({"a"}).has_error());
  CHECK(parsed("").require_keys({"a"}).has_value());
}

TEST_CASE("a duplicate key is an error that names both places") {
  CHECK(refusal_of("a: 1\nb: 2\na: 3\n") == "a.yaml:3:1: duplicate key 'a', first at line 1");
  CHECK(refusal_of("x: {a: 1, 'a': 3}\n") == "a.yaml:1:11: duplicate key 'a', first at line 1");
  CHECK(refusal_of("x: {a: 1}\ny: {a: 1}\n") == "accepted");
}

TEST_CASE("two documents in a file are an error") {
  CHECK(refusal_of("a: 1\n---\nb: 2\n").find("a second document") != std::string::npos);
  CHECK(refusal_of("a: 1\n...\nb: 2\n").find("a second document") != std::string::npos);
  CHECK(refusal_of("---\n---\n").find("a second document") != std::string::npos);
  CHECK(refusal_of("---\na: 1\n...\n") == "accepted");
}

TEST_CASE("an alias is the value that it names, at its own place") {
  const auto root = parsed("a: &x {k: v}\nb: *x\n");
  CHECK(*root["b"]["k"].as_string() == "v");
  CHECK(root["b"].where() == "a.yaml:2:4");
}

TEST_CASE("an alias that would contain itself is an error") {
  CHECK(refusal_of("&a [*a]") == "a.yaml:1:5: an alias inside the value that it names");
  CHECK(refusal_of("*a") != "accepted");
}

TEST_CASE("aliases cannot expand without bound") {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const auto before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int k = 0; k < 9; ++k)
      bomb += ", " + before;
    bomb += "]\n";
  }
  CHECK(refusal_of(bomb).find("aliases expand to too many values") != std::string::npos);
}

TEST_CASE("aliases cannot nest deeper than the file may") {
  std::string chain = "a0: &a0 [x]\n";
  for (int i = 1; i < 40; ++i)
    chain += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + "]\n";
  CHECK(refusal_of(chain).find("nested deeper than 32 levels") != std::string::npos);
}

TEST_CASE("merge keys are refused, a quoted << is a key like any other") {
  CHECK(refusal_of("a: &x {k: v}\nb:\n  <<: *x\n") == "a.yaml:3:3: merge keys ('<<') are not supported");
  CHECK(*parsed("'<<': v")["<<"].as_string() == "v");
}

TEST_CASE("keys that are no text are refused") {
  CHECK(refusal_of("? [a]\n: b\n") != "accepted");
  CHECK(refusal_of("? {a: b}\n: c\n") != "accepted");
  CHECK(refusal_of("~: c\n") != "accepted");
}

TEST_CASE("tags are refused") {
  CHECK(refusal_of("a: !!binary aGk=") ==
        "a.yaml:1:4: tags such as 'tag:yaml.org,2002:binary' are not supported");
  CHECK(refusal_of("a: !thing {b: c}") != "accepted");
}

TEST_CASE("nesting over 32 levels is refused, 32 are not") {
  CHECK(refusal_of(std::string(32, '[') + std::string(32, ']')) == "accepted");
  CHECK(refusal_of(std::string(33, '[') + std::string(33, ']')) ==
        "a.yaml:1:33: nested deeper than 32 levels");
  CHECK(refusal_of(std::string(100000, '[')) != "accepted");
}

TEST_CASE("a text over 4 MiB is refused before it is parsed") {
  const auto value = load_yaml_text(std::string((4 << 20) + 1, '#'), "a.yaml");
  REQUIRE(value.has_error());
  CHECK(value.error().code == error_code::too_large);
}

TEST_CASE("bytes that the parser would mistake for the end, or that are no UTF-8, are refused") {
  CHECK(refusal_of("a: 1\nb: \x04\nc: 3\n") == "a.yaml:2:4: a control character in the text");
  CHECK(refusal_of(std::string_view("a: \0", 4)) == "a.yaml:1:4: a control character in the text");
  CHECK(refusal_of("a: \xff\xfe") == "a.yaml: is not UTF-8 text");
  CHECK(refusal_of("a: \"x\\0y\"") == "a.yaml:1:4: a NUL character in a value");
}

TEST_CASE("a syntax error says where") {
  CHECK(refusal_of("a: [1, 2\nb: 3\n").starts_with("a.yaml:"));
  CHECK(refusal_of("a: b: c\n").starts_with("a.yaml:1:5: "));
  CHECK(refusal_of("\ta: b\n") != "accepted");
}

TEST_CASE("a file name that cannot be printed is escaped in messages") {
  CHECK(load_yaml_text("a: [", "x\n\x1b[31m").error().what.starts_with("x\\n\\x1b[31m:"));
}

TEST_CASE("a file is loaded under its name") {
  const test::temporary_directory directory;
  const auto path = directory.write("a.yaml", "a: b\n");
  const auto root = load_yaml_file(path);
  REQUIRE(root.has_value());
  CHECK((*root)["a"].where() == path + ":1:4");
}

TEST_CASE("what is no regular file is refused and never waited for") {
  const test::temporary_directory directory;
  const auto fifo = directory.path() + "/fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  REQUIRE(::mkdir((directory / "sub").c_str(), 0700) == 0);
  const auto refused = [](const std::string& path) {
    return load_yaml_file(path).error().what ==
           "configuration file " + quoted(path) + " is not a regular file";
  };
  CHECK(refused(fifo));
  CHECK(refused(directory / "sub"));
  CHECK(load_yaml_file("/dev/zero").has_error());
  CHECK(load_yaml_file(directory.path() + "/none").error().code == error_code::not_found);
}

TEST_CASE("a file that others may write, or put another in its place, is refused with the remedy") {
  const test::temporary_directory directory;
  const auto path = directory.write("a.yaml", "a: b\n");
  const auto refused = [&](const std::string& what, const std::string& hint) {
    const auto e = load_yaml_file(path).error();
    CHECK(e.code == error_code::permission_denied);
    CHECK(e.what == "configuration file " + quoted(path) + " is not loaded: " + what);
    CHECK(e.hint == hint);
  };
  for (const mode_t mode : {0664, 0646}) {
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    refused("it may be written by group or others", "chmod go-w " + quoted(path));
  }
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  REQUIRE(::chmod(directory.path().c_str(), 01777) == 0);
  refused("its directory " + quoted(directory.path()) + " may be written by group or others",
          "chmod go-w " + quoted(directory.path()));
  REQUIRE(::chmod(directory.path().c_str(), 0755) == 0);
  CHECK(load_yaml_file(path).has_value());
}

TEST_CASE("a file is found from the current directory and in the root as well") {
  const test::temporary_directory directory;
  directory.write("here.yaml", "a: b\n");
  const unique_fd before(::open(".", O_PATH | O_CLOEXEC));
  REQUIRE(::chdir(directory.path().c_str()) == 0);
  const auto found = load_yaml_file("here.yaml");
  REQUIRE(::fchdir(before.get()) == 0);
  CHECK(found.has_value());
  CHECK(load_yaml_file("/no-such.yaml").error().code == error_code::not_found);
}

TEST_CASE("a file over 4 MiB is refused") {
  const test::temporary_directory directory;
  const auto path = directory.write("a.yaml", "");
  REQUIRE(::truncate(path.c_str(), (4 << 20) + 1) == 0);
  CHECK(load_yaml_file(path).error().code == error_code::too_large);
}

TEST_CASE("what the YAML parser shows of the text is escaped like everything else") {
  for (const std::string text : {"a: \"\\", "a: \"\\\x1b[31m\"", "a: \"\\\x01\""}) {
    const auto value = load_yaml_text(text, "f.yaml");
    REQUIRE(!value);
    CHECK(printable(value.error().what) == value.error().what);
  }
}

TEST_CASE("an indentation by tabs and a value of the wrong kind come with a hint") {
  const auto hint_of = [](const auto& value) { return value ? std::string("accepted") : value.error().hint; };
  for (const std::string text : {"a:\n  b: 1\n\tc: 2\n", "a:\n  b: 1\n  \tc: 2\nd: [\n"})
    CHECK(hint_of(load_yaml_text(text, "a.yaml")) ==
          "line 3 begins with a tab: YAML forbids tabs for indentation");
  CHECK(hint_of(load_yaml_text("a: [1\nb: 2\n", "a.yaml")) == "");
  const auto root = parsed("a: 1\n");
  CHECK(hint_of(root["a"].items()).find("[VALUE, ") != std::string::npos);
  CHECK(hint_of(root["a"].members()).find("`KEY: VALUE`") != std::string::npos);
}
