#include <doctest/doctest.h>

#include "log.hpp"
#include "paths.hpp"
#include "registry.hpp"
#include "support/result_printing.hpp"

using namespace ccbox;

TEST_CASE("the shipped manifest boots: every plugin in it is loaded, and every backend probed") {
  set_log_level("off");
  const auto here = find_installation();
  REQUIRE(here);
  const auto m = load_manifest(here->manifest, here->plugin_directory);
  REQUIRE(m);
  auto plugins = registry::build(*m, CCBOX_PROBE_FULL);
  REQUIRE(plugins);
  for (const auto& status : (*plugins)->statuses()) {
    CAPTURE(status.path);
    if (status.failure) FAIL_CHECK(status.failure->what);
    CHECK(status.state == plugin_status::outcome::loaded);
    const bool is_backend = (*plugins)->find_backend(status.name) != nullptr;
    CHECK(status.probe.has_value() == is_backend);
  }
  REQUIRE((*plugins)->find_backend("bubblewrap"));
  CHECK((*plugins)->find_backend("bubblewrap")->kind() == "native");
  REQUIRE((*plugins)->find_egress());
  CHECK((*plugins)->find_egress()->name() == "egress");
  const auto none = (*plugins)->select_backend("none");
  REQUIRE(none);
  CHECK((*none)->kind() == "none");
  const auto best = (*plugins)->select_backend("");
  REQUIRE(best);
  CHECK((*best)->name() == "bubblewrap");
  plugins->reset();
  set_log_level(log_level::info);
}
