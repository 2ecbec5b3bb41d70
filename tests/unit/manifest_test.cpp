#include "manifest.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>

#include "support/result_printing.hpp"
#include "support/temporary_directory.hpp"

using namespace ccbox;

namespace {

manifest parsed(std::string_view text) {
  auto m = parse_manifest(text, "/etc/ccbox/plugins.yaml", "/lib/plugins");
  REQUIRE(m);
  return *m;
}

error refusal(std::string_view text) {
  const auto m = parse_manifest(text, "m.yaml", "/lib/plugins");
  REQUIRE_FALSE(m.has_value());
  return m.error();
}

}  // namespace

TEST_CASE("an entry has what the manifest says and the defaults for the rest") {
  const auto m = parsed(
      "plugins:\n"
      "  - path: a.so\n"
      "  - path: b.so\n"
      "    enabled: false\n"
      "    priority: -5\n"
      "    required: true\n"
      "    on_request: true\n"
      "    sha256: BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD\n"
      "    options: {accel: tcg, memory: 512, verbose: true}\n");
  CHECK(m.file == "/etc/ccbox/plugins.yaml");
  REQUIRE(m.plugins.size() == 2);
  const auto& plain = m.plugins[0];
  CHECK(plain.path == "/lib/plugins/a.so");
  CHECK(plain.enabled);
  CHECK(plain.priority == 0);
  CHECK_FALSE(plain.required);
  CHECK_FALSE(plain.on_request);
  CHECK_FALSE(plain.sha256.has_value());
  CHECK(plain.options.empty());
  CHECK(plain.where == "/etc/ccbox/plugins.yaml:2:5");
  const auto& full = m.plugins[1];
  CHECK_FALSE(full.enabled);
  CHECK(full.priority == -5);
  CHECK(full.on_request);
  CHECK(full.required);
  CHECK(full.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(full.options == std::vector<std::pair<std::string, std::string>>{
                            {"accel", "tcg"}, {"memory", "512"}, {"verbose", "true"}});
}

TEST_CASE("a name is looked up in the plugin directory, a path is taken from the manifest's") {
  const auto path = [](const std::string& given) {
    return parsed("plugins: [{path: " + given + "}]").plugins.at(0).path;
  };
  CHECK(path("bubblewrap") == "/lib/plugins/bubblewrap.so");
  CHECK(path("bubblewrap.so") == "/lib/plugins/bubblewrap.so");
  CHECK(path("my.backend") == "/lib/plugins/my.backend.so");
  CHECK(path("/opt/x/y.so") == "/opt/x/y.so");
  CHECK(path("./y.so") == "/etc/ccbox/y.so");
  CHECK(path("../y.so") == "/etc/y.so");
}

TEST_CASE("an empty manifest has no plugins") {
  CHECK(parsed("").plugins.empty());
  CHECK(parsed("plugins:\n").plugins.empty());
  CHECK(parsed("plugins: []\ndirectories: []\n").plugins.empty());
}

TEST_CASE("every mistake is an error at its place") {
  const std::pair<std::string, std::string> cases[] = {
      {"plugin: []", "m.yaml:1:1: unknown key 'plugin'"},
      {"plugins: [{path: a, enable: false}]", "m.yaml:1:21: unknown key 'enable'"},
      {"plugins: [{path: a, path: b}]", "m.yaml:1:21: duplicate key 'path', first at line 1"},
      {"plugins: []\n---\nplugins: []", "m.yaml:2:1: a second document in the file"},
      {"plugins: {path: a}", "m.yaml:1:10: expected a list, found a mapping"},
      {"plugins: [a.so]", "m.yaml:1:11: expected a mapping, found a single value"},
      {"[]", "m.yaml:1:1: expected a mapping, found a list"},
      {"plugins: [{priority: 1}]", "m.yaml:1:11: a plugin without path"},
      {"plugins: [{}]", "m.yaml:1:11: a plugin without path"},
      {"plugins: [{path: ''}]", "m.yaml:1:18: path is empty"},
      {"plugins: [{path: }]", "m.yaml:1:18: expected a text, found nothing"},
      {"plugins: [{path: [a]}]", "m.yaml:1:18: expected a text, found a list"},
      {"plugins: [{path: \"a\\0b\"}]", "m.yaml:1:18: a NUL character in a value"},
      {"plugins: [{path: a, enabled: yes}]", "m.yaml:1:30: expected true or false, found 'yes'"},
      {"plugins: [{path: a, enabled: }]", "m.yaml:1:30: expected true or false, found nothing"},
      {"plugins: [{path: a, required: 1}]", "m.yaml:1:31: expected true or false, found '1'"},
      {"plugins: [{path: a, priority: high}]", "m.yaml:1:31: expected a whole number, found 'high'"},
      {"plugins: [{path: a, priority: 1.5}]", "m.yaml:1:31: expected a whole number, found '1.5'"},
      {"plugins: [{path: a, priority: 1000001}]", "m.yaml:1:31: priority is not from -1000000 to 1000000"},
      {"plugins: [{path: a, sha256: abc}]", "m.yaml:1:29: sha256 is not 64 hexadecimal digits"},
      {"plugins: [{path: a, options: [x]}]", "m.yaml:1:30: expected a mapping, found a list"},
      {"plugins: [{path: a, options: {k: [x]}}]", "m.yaml:1:34: expected a text, found a list"},
      {"plugins: [{path: a, options: {k: }}]", "m.yaml:1:34: expected a text, found nothing"},
      {"plugins: [{path: a}, {path: a.so}]",
       "m.yaml:1:29: plugin '/lib/plugins/a.so' is listed twice, first at m.yaml:1:11"},
      {"directories: /opt", "m.yaml:1:14: expected a list, found a single value"},
      {"directories: ['']", "m.yaml:1:15: a directory without name"},
      {"directories: [/etc/hostname]", "m.yaml:1:15: directory '/etc/hostname': Not a directory"},
      {"plugins: [", "m.yaml:1:1: end of sequence flow not found"},
  };
  for (const auto& mistake : cases) {
    CAPTURE(mistake.first);
    const auto e = refusal(mistake.first);
    CHECK(e.what == mistake.second);
    CHECK(e.code == error_code::invalid_argument);
  }
  const std::string odd = "plugins: [{path: a, sha256: " + std::string(64, 'g') + "}]";
  CHECK(refusal(odd).what == "m.yaml:1:29: sha256 is not 64 hexadecimal digits");
}

TEST_CASE("every *.so in a directory is taken, in the order of their names, and nothing else of it") {
  const test::temporary_directory d;
  for (const auto* name : {"b.so", "a.so", "readme.txt", ".hidden.so", "c.so.bak", "so"})
    d.write(name, "");
  REQUIRE(::mkdir((d / "sub.so").c_str(), 0700) == 0);  // the loader says that it is no file
  const auto m = parsed("directories: [" + d.path() + "]");
  std::vector<std::string> paths;
  for (const auto& entry : m.plugins) {
    paths.push_back(entry.path);
    CHECK(entry.enabled);
    CHECK(entry.priority == 0);
    CHECK(entry.where == "/etc/ccbox/plugins.yaml:1:15");
  }
  CHECK(paths == std::vector<std::string>{d / "a.so", d / "b.so", d / "sub.so"});
}

TEST_CASE("an entry of its own wins over the directory that the file is in") {
  const test::temporary_directory d;
  d.write("a.so", "");
  const auto m =
      parsed("plugins: [{path: " + d / "a.so" + ", enabled: false}]\ndirectories: [" + d.path() + "]");
  REQUIRE(m.plugins.size() == 1);
  CHECK_FALSE(m.plugins[0].enabled);
}

TEST_CASE("a directory that is not there is one that nothing was dropped into") {
  const auto m = parsed("directories: [/nonexistent/plugins.d]");
  CHECK(m.plugins.empty());
  CHECK(m.directories == std::vector<std::string>{"/nonexistent/plugins.d"});
}

TEST_CASE("a directory is taken from the manifest's own if it is relative") {
  const test::temporary_directory d;
  d.write("plugins.d/a.so", "");
  const auto m = load_manifest(d.write("m.yaml", "directories: [plugins.d]"), "/lib/plugins");
  REQUIRE(m);
  REQUIRE(m->plugins.size() == 1);
  CHECK(m->plugins[0].path == d / "plugins.d/a.so");
  CHECK(m->directories == std::vector<std::string>{d / "plugins.d"});
}

TEST_CASE("a manifest that is no regular file, or not there, is an error with a hint or a reason") {
  const test::temporary_directory d;
  REQUIRE(::mkfifo((d / "fifo").c_str(), 0600) == 0);
  CHECK(load_manifest(d / "fifo", "/lib").error().what ==
        "configuration file " + ccbox::quoted(d / "fifo") + " is not a regular file");
  REQUIRE(::mkdir((d / "directory").c_str(), 0755) == 0);
  CHECK(load_manifest(d / "directory", "/lib").error().code == error_code::invalid_argument);
  const auto missing = load_manifest(d / "none.yaml", "/lib");
  REQUIRE(missing.has_error());
  CHECK(missing.error().code == error_code::not_found);
  CHECK_FALSE(missing.error().hint.empty());
}

TEST_CASE(
    "the shipped manifest loads bubblewrap, none, the proxies and the monitor from the plugin directory") {
  const auto m = load_manifest(CCBOX_TEST_SOURCE_DIR "/config/plugins.yaml", "/lib/plugins");
  REQUIRE(m);
  REQUIRE(m->plugins.size() == 4);
  CHECK(m->plugins[0].path == "/lib/plugins/bubblewrap.so");
  CHECK(m->plugins[0].priority == 100);
  CHECK(m->plugins[1].path == "/lib/plugins/none.so");
  CHECK(m->plugins[1].priority == 0);
  CHECK(m->plugins[2].path == "/lib/plugins/egress.so");
  CHECK(m->plugins[3].path == "/lib/plugins/violations.so");
}
