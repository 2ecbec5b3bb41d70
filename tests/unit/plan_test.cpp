#include "plan.hpp"

#include <doctest/doctest.h>

#include <boost/json.hpp>

using namespace ccbox;

TEST_CASE("a plan has a JSON form that shows everything in it") {
  plan p;
  p.plugin = "bubblewrap";
  p.kind = "native";
  p.argv = {"/usr/bin/bwrap", "--args", "5"};
  p.env = {{"PATH", "/usr/bin"}};
  p.files = {{5, "bwrap-args", std::string("--bind\0/a", 9)}};
  p.paths = {{6, "/a"}};
  p.enforced = CCBOX_RULE_FS_BINDS_ONLY | CCBOX_RULE_PID_ISOLATION;
  p.layers = {"mount", ""};
  p.identity_userns = true;
  CHECK(to_json(p) == boost::json::parse(R"({
    "plugin": "bubblewrap", "kind": "native", "argv": ["/usr/bin/bwrap", "--args", "5"],
    "env": [{"name": "PATH", "value": "/usr/bin"}],
    "files": [{"fd": 5, "label": "bwrap-args", "bytes": "--bind\u0000/a"}],
    "paths": [{"fd": 6, "hostPath": "/a"}], "denialsFd": null,
    "enforced": ["fs_binds_only", "pid_isolation"], "layers": ["mount", ""],
    "identityUserns": true, "unconfined": false})"));
}

TEST_CASE("a plan has a floor if its last words say so to ccbox-init") {
  plan p;
  CHECK_FALSE(has_floor(p));
  p.argv = {"/usr/bin/bwrap", "--", "/proc/self/fd/4", "--channel", "3"};
  CHECK_FALSE(has_floor(p));
  p.argv.insert(p.argv.end(), {"--floor", "6", "--broker", "5"});
  CHECK(has_floor(p));
  p.argv.push_back("--more");
  CHECK_FALSE(has_floor(p));
}

TEST_CASE("bytes that are no UTF-8 are shown escaped, so that the JSON stays JSON") {
  plan p;
  p.argv = {"/bin/\xff"};
  const auto text = boost::json::serialize(to_json(p));
  CHECK(boost::json::parse(text).at("argv").at(0) == "'/bin/\\xff'");
}
