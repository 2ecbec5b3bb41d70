#include "plugins/bubblewrap/floor.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "ccbox/floor.hpp"
#include "plugins/bubblewrap/broker_orders.hpp"
#include "plugins/bubblewrap/notify_filter.hpp"
#include "support/planned.hpp"

using namespace ccbox::bubblewrap;
using ccbox::test::mount_rule;
using ccbox::test::planned_rule;

namespace {

constexpr std::uint32_t directory = CCBOX_RULE_EXISTS | CCBOX_RULE_DIRECTORY;
constexpr std::uint32_t file = CCBOX_RULE_EXISTS;
constexpr std::uint32_t read_only = CCBOX_RULE_READ_ONLY;

planned_rule name_rule_at(const std::string& guest, const std::string& glob,
                          ccbox_rule_kind kind = CCBOX_KIND_NAME_DENY) {
  planned_rule r;
  r.kind = kind;
  r.flags = CCBOX_RULE_GLOB;
  r.bit = CCBOX_RULE_FS_NAME_DENY;
  r.path = glob;
  r.guest_path = guest;
  return r;
}

struct empty_host : host_tree {
  node_type type(const std::string&) const override { return node_type::missing; }
  std::optional<std::string> link_text(const std::string&) const override { return std::nullopt; }
};

struct planned_guard {
  ccbox::floor_orders floor;
  broker_orders broker;
  std::string broker_path;
  bool opens(const std::string& path) const {
    CHECK(floor.open == broker.open);
    return std::find(floor.open.begin(), floor.open.end(), path) != floor.open.end();
  }
  bool guards(const std::string& path) const {
    return std::find(floor.guarded.begin(), floor.guarded.end(), path) != floor.guarded.end();
  }
};

struct asked {
  std::vector<planned_rule> rules;
  std::uint64_t waived = 0;
  std::string home = "/home/u", tmpdir = "/tmp", init = "/opt/ccbox/ccbox-init";

  std::optional<planned_guard> plan() const {
    std::vector<ccbox_rule> table;
    for (const auto& r : rules)
      table.push_back(
          {r.kind, r.flags, r.bit, ccbox::plugin::str(r.path), ccbox::plugin::str(r.guest_path), {}});
    ccbox_plan_request request{};
    request.size = sizeof request;
    request.rule_stride = sizeof(ccbox_rule);
    request.rules = table.data();
    request.rule_count = table.size();
    request.waived = waived;
    request.uid = 1000;
    request.workdir = ccbox::plugin::str("/");
    request.home = ccbox::plugin::str(home);
    request.tmpdir = ccbox::plugin::str(tmpdir);
    request.init_path = ccbox::plugin::str(init);
    const ccbox::plugin::plan_request parsed(&request);
    const auto guard = plan_guard(parsed, view(parsed, empty_host()));
    if (!guard) return std::nullopt;
    auto floor = ccbox::decode_floor(guard->floor);
    auto broker = decode_broker_orders(guard->broker);
    REQUIRE(floor.has_value());
    REQUIRE(broker.has_value());
    return planned_guard{*std::move(floor), *std::move(broker), guard->broker_path};
  }
};

}  // namespace

TEST_CASE("every writable directory of the host is guarded, with rules of its own or not; nothing else is") {
  const auto planned =
      asked{{mount_rule("/w", directory), mount_rule("/other", directory),
             mount_rule("/r", directory | read_only), mount_rule("/f", file), name_rule_at("/w", ".env")}}
          .plan();
  REQUIRE(planned);
  CHECK(planned->guards("/w"));
  CHECK(planned->guards("/other"));
  CHECK_FALSE(planned->guards("/r"));
  CHECK_FALSE(planned->guards("/f"));
}

TEST_CASE("private memory stays open") {
  const auto planned = asked{{mount_rule("/w", directory), name_rule_at("/w", ".env")}}.plan();
  REQUIRE(planned);
  for (const char* path : {"/proc", "/dev", "/tmp", "/home/u"})
    CHECK_MESSAGE(planned->opens(path), path);
  CHECK_FALSE(planned->opens("/w"));
  CHECK_FALSE(planned->opens("/"));
}

TEST_CASE(
    "private memory in which a writable directory of the host is mounted does not: it would open that") {
  const auto in_home =
      asked{{mount_rule("/home/u/project", directory), name_rule_at("/home/u/project", ".env")}}.plan();
  REQUIRE(in_home);
  CHECK_FALSE(in_home->opens("/home/u"));
  CHECK(in_home->opens("/tmp"));
  const auto in_tmp = asked{{mount_rule("/tmp/a/b", directory), name_rule_at("/tmp/a/b", ".env")}}.plan();
  REQUIRE(in_tmp);
  CHECK_FALSE(in_tmp->opens("/tmp"));
  CHECK(in_tmp->opens("/home/u"));
  const auto a_file =
      asked{{mount_rule("/w", directory), mount_rule("/tmp/file", file), name_rule_at("/w", ".env")}}.plan();
  REQUIRE(a_file);
  CHECK_FALSE(a_file->opens("/tmp"));
}

TEST_CASE("private memory around what is mounted read-only, or beside a similar name, stays open") {
  const auto planned = asked{{mount_rule("/w", directory), mount_rule("/tmp/r", directory | read_only),
                              mount_rule("/home/u2/p", directory), name_rule_at("/w", ".env")}}
                           .plan();
  REQUIRE(planned);
  CHECK(planned->opens("/tmp"));
  CHECK(planned->opens("/home/u"));
}

TEST_CASE("no open path is, contains or lies in a guarded one, wherever mounts lie") {
  const std::vector<std::string> places = {"/w",      "/w/in", "/tmp/x", "/home/u/p",
                                           "/home/u", "/tmp",  "/home",  "/run/x"};
  for (unsigned chosen = 1; chosen < (1u << places.size()); ++chosen) {
    asked question;
    for (std::size_t i = 0; i < places.size(); ++i)
      if ((chosen >> i) & 1) question.rules.push_back(mount_rule(places[i], directory));
    question.rules.push_back(name_rule_at("/", ".env"));
    const auto planned = question.plan();
    REQUIRE(planned);
    CAPTURE(chosen);
    for (const auto& open : planned->floor.open)
      for (const auto& guarded : planned->floor.guarded)
        CHECK_MESSAGE(!((guarded + "/").starts_with(open + "/") || (open + "/").starts_with(guarded + "/")),
                      open << " and " << guarded);
  }
}

TEST_CASE("rules reach the broker by the directory they are anchored to, literal paths by the root") {
  planned_rule literal = name_rule_at("/home/u/.config/autostart", "/home/u/.config/autostart");
  literal.flags = 0;
  const auto planned = asked{
      {mount_rule("/w", directory), name_rule_at("/w", ".env"), name_rule_at("/w", "*.key"),
       name_rule_at("/w", ".env.example", CCBOX_KIND_NAME_EXEMPT),
       literal}}.plan();
  REQUIRE(planned);
  const auto& anchors = planned->broker.anchors;
  REQUIRE(anchors.size() == 2);
  CHECK(anchors[0].guest == "/");
  REQUIRE(anchors[0].deny.size() == 1);
  CHECK(anchors[0].deny[0].glob == "./home/u/.config/autostart");
  CHECK(anchors[1].guest == "/w");
  CHECK(anchors[1].deny.size() == 2);
  CHECK(anchors[1].exempt == std::vector<std::string>{".env.example"});
  CHECK(planned->floor.filter == build_notify_filter());
  CHECK(planned->broker_path == "/opt/ccbox/ccbox-broker");
}

TEST_CASE("without a rule that forbids a name, or when it is given up, nothing is guarded") {
  CHECK_FALSE(asked{{mount_rule("/w", directory)}}.plan());
  CHECK_FALSE(
      asked{{mount_rule("/w", directory), name_rule_at("/w", "*.sample", CCBOX_KIND_NAME_EXEMPT)}}.plan());
  asked given_up{{mount_rule("/w", directory), name_rule_at("/w", ".env")}};
  given_up.waived = CCBOX_RULE_FS_NAME_DENY;
  CHECK_FALSE(given_up.plan());
}
