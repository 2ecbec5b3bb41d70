#include "registry.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <future>

#include "log.hpp"
#include "support/result_printing.hpp"

using namespace ccbox;

namespace {

std::string built(const std::string& name) {
  return CCBOX_TEST_BINARY_DIR "/tests/plugins/" + name + ".so";
}

// Builds registries of built fake plugins; the log is silent.
struct scene {
  manifest m;
  std::unique_ptr<registry> plugins;

  scene() {
    m.file = "plugins.yaml";
    set_log_level("off");
  }
  ~scene() {
    plugins.reset();
    set_log_level(log_level::info);
  }

  manifest_entry& add(const std::string& name, int priority = 0) {
    manifest_entry entry;
    entry.path = built(name);
    entry.priority = priority;
    entry.where = "plugins.yaml:" + std::to_string(m.plugins.size() + 1) + ":5";
    m.plugins.push_back(std::move(entry));
    return m.plugins.back();
  }
  void add_unavailable(const std::string& name, int priority = 0) {
    add(name, priority).options = {{"available", "no"}};
  }
  const registry& build(ccbox_probe_depth depth = CCBOX_PROBE_QUICK) {
    auto made = registry::build(m, depth);
    REQUIRE(made);
    plugins = std::move(*made);
    return *plugins;
  }
  std::string selected(const std::string& request) {
    const auto found = plugins->select_backend(request);
    return found ? (*found)->name() : "error: " + found.error().what;
  }
  error refusal(const std::string& request) {
    const auto found = plugins->select_backend(request);
    REQUIRE_FALSE(found.has_value());
    return found.error();
  }
};

using outcome = plugin_status::outcome;

}  // namespace

TEST_CASE("plugins are loaded by falling priority, and each status says what came of it") {
  scene s;
  s.add("fake", 1);
  s.add("fake_monitor", 3);
  s.add("fake_other", 2).enabled = false;
  s.add("bad_no_symbol", 9);
  const auto& statuses = s.build(CCBOX_PROBE_FULL).statuses();
  REQUIRE(statuses.size() == 4);

  CHECK(statuses[0].path == built("bad_no_symbol"));
  CHECK(statuses[0].state == outcome::skipped);
  REQUIRE(statuses[0].failure.has_value());
  CHECK(statuses[0].failure->what.find("does not export ccbox_plugin_v1") != std::string::npos);
  CHECK(statuses[0].where == "plugins.yaml:4:5");

  CHECK(statuses[1].name == "monitor");
  CHECK(statuses[1].state == outcome::loaded);
  CHECK(statuses[1].extensions == std::vector<std::string>{"ccbox.monitor/1"});
  CHECK_FALSE(statuses[1].probe.has_value());

  CHECK(statuses[2].path == built("fake_other"));
  CHECK(statuses[2].state == outcome::disabled);
  CHECK_FALSE(statuses[2].failure.has_value());

  CHECK(statuses[3].name == "fake");
  CHECK(statuses[3].version == "1.0");
  CHECK(statuses[3].priority == 1);
  CHECK(statuses[3].extensions == std::vector<std::string>{"ccbox.backend/1"});
  REQUIRE(statuses[3].probe.has_value());
  CHECK(statuses[3].probe->note == "probed to the full");
}

TEST_CASE("plugins of equal priority keep the manifest's order") {
  scene s;
  s.add("fake_other");
  s.add("fake");
  s.build();
  CHECK(s.selected("") == "other");
}

TEST_CASE("a bad plugin is skipped with its reason and the others are loaded") {
  const std::pair<std::string, std::string> cases[] = {
      {"bad_null_descriptor", "returns no descriptor"},
      {"bad_unknown_extension", "offers no extension that this ccbox knows"},
      {"bad_small_backend", "its table is smaller than version 1.0"},
      {"bad_kind", "its kind is none of native, microvm, none"},
      {"bad_probe", "the probe broke"},
      {"bad_sanitizer", "sanitizer"},
      {"bad_throws_in_get_extension", "offers no extension"},
      {"not_there", "No such file or directory"},
  };
  for (const auto& bad : cases) {
    CAPTURE(bad.first);
    scene s;
    s.add(bad.first, 5);
    s.add("fake_other", 1);
    const auto& statuses = s.build().statuses();
    REQUIRE(statuses.size() == 2);
    CHECK(statuses[0].state == outcome::skipped);
    REQUIRE(statuses[0].failure.has_value());
    CHECK(statuses[0].failure->what.find(bad.second) != std::string::npos);
    CHECK(s.selected("") == "other");
  }
}

TEST_CASE("a required plugin that cannot be loaded stops the boot; one that is not required does not") {
  scene s;
  s.add("bad_probe").required = true;
  const auto made = registry::build(s.m, CCBOX_PROBE_QUICK);
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().what == "a required plugin was not loaded: backend 'fake': the probe broke");
  CHECK(made.error().hint == "it is required at plugins.yaml:1:5");
  s.m.plugins[0].required = false;
  CHECK(s.build().statuses()[0].state == outcome::skipped);
}

TEST_CASE("an entry on request is left out where nobody asks for a backend, unless it is required") {
  scene s;
  s.add("fake", 1);
  s.add("fake_other", 2).on_request = true;
  CHECK(s.build().statuses()[0].state == outcome::loaded);
  CHECK(s.selected("") == "other");
  s.plugins = std::move(*registry::build(s.m, CCBOX_PROBE_QUICK, plugin_choice::needed));
  REQUIRE(s.plugins->statuses().size() == 2);
  CHECK(s.plugins->statuses()[0].state == outcome::not_asked_for);
  CHECK(s.plugins->statuses()[0].name.empty());
  CHECK_FALSE(s.plugins->find_backend("other"));
  CHECK(s.selected("") == "fake");
  s.m.plugins[1].required = true;
  s.plugins = std::move(*registry::build(s.m, CCBOX_PROBE_QUICK, plugin_choice::needed));
  CHECK(s.plugins->statuses()[0].state == outcome::loaded);
  CHECK(s.selected("") == "other");
}

TEST_CASE("a required backend that is loaded but not available on this host does not stop the boot") {
  scene s;
  s.add_unavailable("fake");
  s.m.plugins[0].required = true;
  CHECK(s.build().statuses()[0].state == outcome::loaded);
}

TEST_CASE("of two plugins with one name the first is kept and the second is skipped with both paths") {
  scene s;
  s.add("fake", 2);
  s.add("fake_newer", 1);
  const auto& statuses = s.build().statuses();
  CHECK(statuses[0].state == outcome::loaded);
  CHECK(statuses[1].state == outcome::skipped);
  CHECK(statuses[1].failure->code == error_code::conflict);
  CHECK(statuses[1].failure->what == "plugin " + ccbox::quoted(built("fake_newer")) +
                                         " is called 'fake' as is " + ccbox::quoted(built("fake")));
  CHECK(s.plugins->find_backend("fake")->version() == "1.0");
}

TEST_CASE("a plugin that takes the name of another kind is skipped") {
  scene s;
  s.add("bad_impostor");
  CHECK(s.build().statuses()[0].failure->what.find("is called 'microvm' but is of kind native") !=
        std::string::npos);
  CHECK(s.plugins->find_backend("microvm") == nullptr);
}

TEST_CASE("the default is the available backend with the highest priority, and never none") {
  scene s;
  s.add("fake_none", 1000);
  s.add("fake", 1);
  s.add("fake_vm", 5);
  s.add_unavailable("fake_other", 9);
  s.build();
  CHECK(s.selected("") == "vm");
}

TEST_CASE("where no backend is available the default is an error with every hint, and none is not used") {
  scene s;
  s.add("fake_none", 1000);
  s.add_unavailable("fake", 2);
  s.add_unavailable("fake_vm", 1);
  s.build();
  const auto e = s.refusal("");
  CHECK(e.code == error_code::unavailable);
  CHECK(e.what == "no backend is available on this host: 'fake' (missing-tool), 'vm' (missing-tool)");
  CHECK(e.hint == "install fake; install vm");
}

TEST_CASE("without any backend the default is an error that leads to the manifest") {
  scene s;
  s.add("fake_none");
  s.build();
  CHECK(s.refusal("").what == "no backend is available on this host");
  CHECK(s.refusal("").hint.find("'plugins.yaml'") != std::string::npos);
}

TEST_CASE("a kind is the best of that kind, and never steps down to another") {
  scene s;
  s.add("fake", 1);
  s.add("fake_other", 2);
  s.add_unavailable("fake_vm", 9);
  s.build();
  CHECK(s.selected("native") == "other");
  const auto vm = s.refusal("microvm");
  CHECK(vm.code == error_code::unavailable);
  CHECK(vm.what == "backend 'vm' is not available on this host (missing-tool)");
  CHECK(vm.hint == "install vm");
  const auto none = s.refusal("none");
  CHECK(none.code == error_code::not_found);
  CHECK(none.what == "no backend of kind none is loaded");
}

TEST_CASE("none is used when it is asked for by name") {
  scene s;
  s.add("fake", 1);
  s.add("fake_none");
  s.build();
  CHECK(s.selected("none") == "none");
}

TEST_CASE("a name is that very plugin or an error, whatever else there is") {
  scene s;
  s.add("fake", 9);
  s.add_unavailable("fake_other");
  s.build();
  CHECK(s.selected("fake") == "fake");
  CHECK(s.refusal("other").code == error_code::unavailable);
  const auto e = s.refusal("nobody");
  CHECK(e.code == error_code::not_found);
  CHECK(e.what == "no backend is called 'nobody'");
  CHECK(e.hint == "loaded backends: fake, other");
}

TEST_CASE("a backend that was skipped or disabled says so when it is asked for") {
  scene s;
  s.add("bad_probe");
  s.add("fake_other").enabled = false;
  s.build();
  CHECK(s.refusal("bad_probe").what == "no backend is called 'bad_probe': backend 'fake': the probe broke");
  CHECK(s.refusal("fake").what == "no backend is called 'fake': backend 'fake': the probe broke");
  CHECK(s.refusal("fake_other").hint == "it is disabled at plugins.yaml:2:5");
}

TEST_CASE("diagnose runs the full probe of one backend again") {
  scene s;
  s.add("fake");
  s.build(CCBOX_PROBE_QUICK);
  CHECK(s.plugins->statuses()[0].probe->note == "probed");
  const auto probe = s.plugins->diagnose("fake");
  REQUIRE(probe);
  CHECK(probe->note == "probed to the full");
  CHECK(s.plugins->diagnose("nobody").error().code == error_code::not_found);
}

TEST_CASE("a backend is never probed by two threads at once") {
  scene s;
  s.add("fake");
  s.build(CCBOX_PROBE_QUICK);
  std::vector<std::future<std::string>> notes;
  for (int i = 0; i < 8; ++i)
    notes.push_back(std::async(std::launch::async, [&] { return s.plugins->diagnose("fake")->note; }));
  for (auto& note : notes)
    CHECK(note.get() == "probed to the full");
}

TEST_CASE("a plugin's events reach the handler that is set, and nobody before and after") {
  scene s;
  s.add("fake");
  s.build();
  std::vector<std::string> seen;
  policy p;
  p.spec.session_id = "s1";
  const auto plan = [&] { return s.plugins->find_backend("fake")->make_plan(p, "/init"); };
  CHECK(plan());
  s.plugins->on_plugin_event([&](std::string_view session, std::string_view type, std::string_view json) {
    seen.push_back(std::string(session) + " " + std::string(type) + " " + std::string(json));
    return ccbox_status{CCBOX_OK};
  });
  CHECK(plan());
  CHECK(seen == std::vector<std::string>{"s1 violation {\"action\":\"plan\"}"});

  s.plugins->on_plugin_event([](auto...) -> ccbox_status { throw std::runtime_error("handler broke"); });
  CHECK(plan().error().code == error_code::failed);  // the plugin hears of it; nothing is thrown through it
  p.spec.session_id = "\xff";
  CHECK(plan().error().code == error_code::invalid_argument);
  s.plugins->on_plugin_event({});
  p.spec.session_id = "s1";
  CHECK(plan());
  CHECK(seen.size() == 1);
}

TEST_CASE("the egress plugin with the highest priority is used, and there may be none") {
  scene s;
  s.add("fake", 9);
  CHECK(s.build().find_egress() == nullptr);
  s.add("fake_egress_other", 1);
  s.add("fake_egress", 2);
  REQUIRE(s.build().find_egress());
  CHECK(s.plugins->find_egress()->name() == "egress");
  for (const auto& status : s.plugins->statuses())
    if (status.name.starts_with("egress")) {
      CHECK(status.extensions == std::vector<std::string>{"ccbox.egress/1"});
      CHECK(status.state == outcome::loaded);
    }
  CHECK(s.plugins->find_backend("egress") == nullptr);
}

TEST_CASE("an egress table that is too small or has holes is no egress plugin") {
  for (const std::string name : {"bad_small_egress", "bad_egress_holes"}) {
    CAPTURE(name);
    scene s;
    s.add(name);
    CHECK(s.build().find_egress() == nullptr);
    CHECK(s.plugins->statuses()[0].state == outcome::skipped);
    CHECK(s.plugins->statuses()[0].failure->what.find("smaller than version 1.0 or has holes") !=
          std::string::npos);
  }
}

TEST_CASE("who handed plugin events over to somebody else cannot take them from there") {
  scene s;
  s.add("fake");
  s.build();
  int mine = 0, others = 0;
  const auto first = s.plugins->on_plugin_event([&](auto...) { return ++mine, CCBOX_OK; });
  const auto second = s.plugins->on_plugin_event([&](auto...) { return ++others, CCBOX_OK; });
  policy p;
  s.plugins->end_plugin_events(first);
  REQUIRE(s.plugins->find_backend("fake")->make_plan(p, "/init"));
  CHECK(mine == 0);
  CHECK(others == 1);
  s.plugins->end_plugin_events(second);
  REQUIRE(s.plugins->find_backend("fake")->make_plan(p, "/init"));
  CHECK(others == 1);
}
