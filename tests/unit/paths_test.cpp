#include "paths.hpp"

#include <doctest/doctest.h>

using namespace ccbox;

TEST_CASE("an installed ccbox finds its parts under its prefix") {
  const auto found = find_installation_of("/opt/ccbox/bin/ccbox");
  REQUIRE(found.has_value());
  CHECK(found->init == "/opt/ccbox/lib/ccbox/ccbox-init");
  CHECK(found->plugin_directory == "/opt/ccbox/lib/ccbox/plugins");
  CHECK(found->manifest == "/opt/ccbox/etc/ccbox/plugins.yaml");
  CHECK(found->policy == "/opt/ccbox/etc/ccbox/policy.yaml");
  CHECK(found->egress == "/opt/ccbox/etc/ccbox/egress.yaml");
  CHECK(found->net_connect == "/opt/ccbox/lib/ccbox/ccbox-net-connect");
}

TEST_CASE("the configuration of a ccbox under /usr is in /etc, one under /usr/local has its own") {
  CHECK(find_installation_of("/usr/bin/ccbox")->manifest == "/etc/ccbox/plugins.yaml");
  CHECK(find_installation_of("/usr/bin/ccbox")->init == "/usr/lib/ccbox/ccbox-init");
  CHECK(find_installation_of("/usr/local/bin/ccbox")->manifest == "/usr/local/etc/ccbox/plugins.yaml");
}

TEST_CASE("this test, which runs in the build tree, finds the build tree and the source's configuration") {
  const auto found = find_installation();
  REQUIRE(found.has_value());
  CHECK(found->init == CCBOX_TEST_BINARY_DIR "/bin/ccbox-init");
  CHECK(found->plugin_directory == CCBOX_TEST_BINARY_DIR "/plugins");
  CHECK(found->manifest == CCBOX_TEST_SOURCE_DIR "/config/plugins.yaml");
  CHECK(found->policy == CCBOX_TEST_SOURCE_DIR "/config/policy.yaml");
  CHECK(found->egress == CCBOX_TEST_SOURCE_DIR "/config/egress.yaml");
  CHECK(found->net_connect == CCBOX_TEST_BINARY_DIR "/bin/ccbox-net-connect");
}

TEST_CASE("a neighbour of the build tree with the same beginning of its name is not inside it") {
  CHECK(find_installation_of(CCBOX_TEST_BINARY_DIR "-other/bin/ccbox")->init == CCBOX_TEST_BINARY_DIR
        "-other/lib/ccbox/ccbox-init");
}

TEST_CASE("an executable that lies nowhere in particular is an error that names it") {
  for (const auto* path : {"/tmp/ccbox", "/ccbox", "bin/ccbox", ""}) {
    const auto found = find_installation_of(path);
    REQUIRE(found.has_error());
    CHECK(found.error().code == error_code::not_found);
    CHECK(found.error().what.find(quoted(path)) != std::string::npos);
    CHECK_FALSE(found.error().hint.empty());
  }
}
