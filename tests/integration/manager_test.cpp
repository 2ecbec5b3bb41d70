// The second seam. That the runner does what its argv says is the command line's to test; here: that what it
// will read makes the same enclosure.
#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "limits.hpp"
#include "sandbox_manager.hpp"
#include "support/booted.hpp"
#include "support/event_loop.hpp"
#include "support/result_printing.hpp"
#include "support/temporary_directory.hpp"

using namespace ccbox;

namespace {

struct fixture {
  test::temporary_directory dir;
  sandbox_context context = test::shared_boot().context();
  sandbox_manager manager() const { return {context, "/opt/ccbox/bin/ccbox", {"--policy", "/p.yaml"}}; }
  sandbox_spec spec() const { return test::spec_for("s1", "bubblewrap", dir.path()); }
};

std::string spec_text(const wrapped_command& w) {
  const auto at = std::find(w.argv.begin(), w.argv.end(), "--spec-json");
  REQUIRE(at != w.argv.end());
  return at[1];
}

std::string text_of(const plan& p) {
  return boost::json::serialize(to_json(p));
}

}  // namespace

TEST_CASE_FIXTURE(fixture,
                  "a wrapped command is the runner, its configuration, the spec, and the command untouched") {
  const std::vector<std::string> command = {"--help", "-c", "two words", "", "--", "$x"};
  sandbox_spec wanted = spec();
  wanted.without = {"fs_name_deny"};
  const auto w = manager().wrap(command, wanted);
  REQUIRE(w);
  REQUIRE(w->argv.size() == 7 + command.size());
  CHECK(std::vector<std::string>(w->argv.begin(), w->argv.begin() + 5) ==
        std::vector<std::string>{"/opt/ccbox/bin/ccbox", "run", "--policy", "/p.yaml", "--spec-json"});
  CHECK(w->argv[6] == "--");
  CHECK(std::vector<std::string>(w->argv.begin() + 7, w->argv.end()) == command);
  CHECK(w->backend == "bubblewrap");
  CHECK(w->warnings.size() == 1);  // a rule was given up
}

TEST_CASE_FIXTURE(fixture, "what the runner reads makes the very plan that a launch would have made") {
  for (const std::string backend : {"bubblewrap", "none", "native"}) {
    CAPTURE(backend);
    sandbox_spec wanted = spec();
    wanted.backend = backend;
    wanted.guest_workdir.reset();
    context.host.current_directory = dir.path();
    context.host.environment["MY_OWN_THING"] = "1";
    context.host.environment["LANG"] = "C";
    const auto launched = prepare(context, wanted);
    REQUIRE(launched);
    const auto w = manager().wrap({"true"}, wanted);
    REQUIRE(w);

    // The runner's side: another directory, the wrapped environment.
    sandbox_context there = context;
    there.host.current_directory = "/";
    there.host.environment.clear();
    for (const auto& [name, value] : w->env)
      there.host.environment[name] = value;
    CHECK(there.host.environment.at("HOME") == context.host.home);
    const auto read = parse_sandbox_spec(spec_text(*w));
    REQUIRE(read);
    const auto run = prepare(there, *read);
    REQUIRE(run);
    CHECK(text_of(run->how) == text_of(launched->how));
    CHECK(run->chosen == launched->chosen);
    CHECK(run->rules.workdir == launched->rules.workdir);
    if (backend != "none") CHECK(run->env == launched->env);
    CHECK(run->env.count("MY_OWN_THING") == 0);  // `none` inherits through the port only
  }
}

TEST_CASE_FIXTURE(fixture, "wrapping refuses what a launch refuses, with the same words") {
  test::event_loop loop;
  event_bus bus;
  sandbox_port port(loop.executor(), context, bus);
  std::vector<sandbox_spec> bad(6, spec());
  bad[0].bind_mounts[0].host_path = "relative";
  bad[1].bind_mounts[0].host_path = dir / "missing";
  bad[2].backend = "microvm";
  bad[3].session_id = "a/b";
  bad[4].guest_workdir = "/nowhere";
  bad[5].without = {"fs_binds_only"};
  for (std::size_t i = 0; i < bad.size(); ++i) {
    CAPTURE(i);
    const auto wrapped = manager().wrap({"true"}, bad[i]);
    const auto launched = loop.run(port.launch(bad[i]));
    REQUIRE_FALSE(wrapped);
    REQUIRE_FALSE(launched);
    CHECK(wrapped.error().code == launched.error().code);
    CHECK(wrapped.error().what == launched.error().what);
  }
}

TEST_CASE_FIXTURE(fixture, "limits that cannot be enforced here are refused when wrapping") {
  sandbox_spec s = spec();
  s.limits.cpus = 1;
  const auto w = manager().wrap({"true"}, s);
  CHECK(w.has_value() == !probe_limits().cpus.empty());
  if (!w) CHECK(w.error().code == error_code::unenforceable);
}

TEST_CASE_FIXTURE(fixture, "commands that no argv can carry are refused") {
  CHECK(manager().wrap({}, spec()).error().code == error_code::invalid_argument);
  CHECK(manager().wrap({""}, spec()).error().code == error_code::invalid_argument);
  CHECK(manager().wrap({"sh", std::string("a\0b", 3)}, spec()).error().code == error_code::invalid_argument);
  CHECK(manager().wrap({"sh", std::string(200 << 10, 'x')}, spec()).error().code == error_code::too_large);
}

TEST_CASE_FIXTURE(fixture, "a field whose bytes JSON cannot carry is refused by name") {
  const std::string odd = dir / "odd-\xff";
  dir.write("odd-\xff/file", "");
  sandbox_spec s = spec();
  s.bind_mounts.push_back({odd, odd, false});
  const auto w = manager().wrap({"true"}, s);
  REQUIRE_FALSE(w);
  CHECK(w.error().code == error_code::invalid_argument);
  CHECK(w.error().what.find("bindMounts[1].hostPath") != std::string::npos);
}

TEST_CASE_FIXTURE(fixture, "a spec that is too long for one argument is refused") {
  sandbox_spec s = spec();
  s.without.push_back("net_proxy_only");  // or an egress plugin would have to be there
  for (int i = 0; i < 4000; ++i)
    s.egress_allowlist.push_back("host-" + std::to_string(i) + ".a-rather-long-name.example.com");
  const auto w = manager().wrap({"true"}, s);
  REQUIRE_FALSE(w);
  CHECK(w.error().code == error_code::too_large);
}

TEST_CASE_FIXTURE(
    fixture,
    "the environment of a wrapped command is built, with what injects code or carries secrets left out") {
  context.host.environment = {{"LD_PRELOAD", "/x.so"}, {"NODE_OPTIONS", "-r x"}, {"GITHUB_TOKEN", "ghp_x"},
                              {"LANG", "C"},           {"TERM", "xterm"},        {"HOME", context.host.home}};
  for (const std::string backend : {"bubblewrap", "none"}) {
    sandbox_spec s = spec();
    s.backend = backend;
    const auto w = manager().wrap({"true"}, s);
    REQUIRE(w);
    environment env(w->env.begin(), w->env.end());
    CHECK(env.count("LD_PRELOAD") + env.count("NODE_OPTIONS") + env.count("GITHUB_TOKEN") == 0);
    CHECK(env.at("LANG") == "C");
    CHECK(env.count("PATH") == 1);
  }
}
