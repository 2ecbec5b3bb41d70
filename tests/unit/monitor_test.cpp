#include "monitor.hpp"

#include <doctest/doctest.h>

#include "denial.hpp"
#include "log.hpp"
#include "registry.hpp"
#include "support/result_printing.hpp"

using namespace ccbox;

namespace {

// The fake monitor, loaded as any other plugin, watching one session.
struct scene {
  std::unique_ptr<registry> plugins;
  policy rules;

  explicit scene(const std::string& misbehave = {}) {
    set_log_level("off");
    manifest m;
    manifest_entry entry;
    entry.path = CCBOX_TEST_BINARY_DIR "/tests/plugins/fake_monitor.so";
    if (!misbehave.empty()) entry.options = {{"misbehave", misbehave}};
    m.plugins.push_back(entry);
    auto made = registry::build(m, CCBOX_PROBE_QUICK);
    REQUIRE(made);
    plugins = std::move(*made);
    rules.spec.session_id = "s1";
    rules.workdir = "/w";
  }
  ~scene() {
    plugins.reset();
    set_log_level(log_level::info);
  }

  result<std::unique_ptr<monitor_watch>> open() { return plugins->find_monitor()->open(rules, 0, true); }
};

const sandbox_violation denied{"file-write-create", "/w/.env", "canPush", "{}", 3};

}  // namespace

TEST_CASE("what the monitor hands on is an event; what it counts comes with a flush") {
  scene s;
  auto watch = s.open();
  REQUIRE(watch);
  auto first = (*watch)->denial(denied);
  REQUIRE(first.size() == 1);
  CHECK(first[0].type == sandbox_event_type::violation);
  CHECK(first[0].violation == sandbox_violation{"seen", "/w/.env", {}, "{}", 3});
  CHECK((*watch)->denial(denied).empty());
  auto told = (*watch)->flush(false);
  REQUIRE(told.events.size() == 1);
  CHECK(told.events[0].violation == sandbox_violation{"counted", "now", {}, {}, 3});
  CHECK(told.again_ms == 50);
  told = (*watch)->flush(true);
  CHECK(told.events.empty());
  CHECK(told.again_ms == 0);

  const auto said = (*watch)->output(7, "text");
  REQUIRE(said.size() == 1);
  CHECK(said[0].exec_id == 7);
  CHECK(said[0].violation->target == "text");
}

TEST_CASE("a closed watch answers nothing") {
  scene s;
  auto watch = s.open();
  REQUIRE(watch);
  (*watch)->close();
  (*watch)->close();
  CHECK((*watch)->denial(denied).empty());
  CHECK((*watch)->output(1, "x").empty());
  CHECK((*watch)->flush(true).events.empty());
}

TEST_CASE("what a monitor says can move no cursor and forge no line") {
  scene s("hostile");
  auto watch = s.open();
  REQUIRE(watch);
  const auto events = (*watch)->denial(denied);
  REQUIRE(events.size() == 1);
  const auto& violation = *events[0].violation;
  CHECK(violation.target == "a\\nb\\x1b[31m\\xe2\\x80\\xae\\xff");
  CHECK(violation.raw == "\\u202e\\ufffd\n");
  CHECK(violation.count == 1);
}

TEST_CASE("a violation without a verb is none, and a flood of them ends") {
  scene nameless("nameless"), flood("flood");
  CHECK((*nameless.open())->denial(denied).empty());
  CHECK((*flood.open())->denial(denied).size() == 1000);
}

TEST_CASE("a monitor that will not watch is an error that names it") {
  for (const auto& [how, what] : std::vector<std::pair<std::string, std::string>>{
           {"refuse", "monitor plugin 'monitor': this session is not for me\\n"},
           {"silent", "monitor plugin 'monitor': open failed with status 0 and no reason"}}) {
    scene s(how);
    const auto watch = s.open();
    REQUIRE(watch.has_error());
    CHECK(watch.error().what == what);
  }
}

TEST_CASE("a monitor with a table that is too small or has holes is not loaded") {
  set_log_level("off");
  for (const std::string name : {"bad_small_monitor", "bad_monitor_holes"}) {
    manifest m;
    m.plugins.emplace_back().path = CCBOX_TEST_BINARY_DIR "/tests/plugins/" + name + ".so";
    const auto plugins = registry::build(m, CCBOX_PROBE_QUICK);
    REQUIRE(plugins);
    CHECK((*plugins)->find_monitor() == nullptr);
    REQUIRE((*plugins)->statuses()[0].failure);
    CHECK((*plugins)->statuses()[0].failure->what ==
          "monitor plugin 'monitor': its table is smaller than version 1.0 or has holes");
  }
  set_log_level(log_level::info);
}

TEST_CASE("of two monitors the one with the higher priority is used") {
  set_log_level("off");
  manifest m;
  m.plugins.emplace_back().path = CCBOX_TEST_BINARY_DIR "/tests/plugins/fake_monitor.so";
  m.plugins.emplace_back().path = CCBOX_TEST_BINARY_DIR "/tests/plugins/fake_monitor_other.so";
  m.plugins.back().priority = 1;
  const auto plugins = registry::build(m, CCBOX_PROBE_QUICK);
  REQUIRE(plugins);
  REQUIRE((*plugins)->find_monitor());
  CHECK((*plugins)->find_monitor()->name() == "monitor_other");
  set_log_level(log_level::info);
}
