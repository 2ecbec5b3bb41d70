#include <doctest/doctest.h>

#include <functional>

#include "ccbox/plugin.hpp"

// The veneer is tested through the C tables that it makes: what a host of another age would see.
namespace {

using namespace ccbox::plugin;

std::function<void(const plan_request&, plan_sink&)> on_plan;
std::function<probe_answer()> on_probe;
std::function<void(const host&, options&)> on_create;
int alive = 0;

class scripted : public backend {
 public:
  static constexpr std::string_view kind = "native";
  scripted(const host& h, options& o) {
    if (on_create) on_create(h, o);
    ++alive;
  }
  ~scripted() override { --alive; }
  probe_answer probe(ccbox_probe_depth) override { return on_probe(); }
  void plan(const plan_request& request, plan_sink& sink) override { on_plan(request, sink); }
  const void* extension(std::string_view name) override { return name == "test.extra/1" ? this : nullptr; }
};

struct text_buffer {
  char bytes[128];
  ccbox_text text{bytes, sizeof bytes, 99};
  std::string str() const { return {bytes, text.length}; }
};

struct scene {
  std::string logged;
  ccbox_host table{};
  std::vector<ccbox_option> options;
  ccbox_config config{};
  ccbox_plugin* instance = nullptr;
  text_buffer error;

  scene() {
    on_create = nullptr;
    table.size = sizeof table;
    table.ctx = this;
    table.log = [](void* ctx, ccbox_level, ccbox_str text) { static_cast<scene*>(ctx)->logged = view(text); };
  }
  ~scene() {
    if (instance) boundary<scripted>::destroy(instance);
  }
  ccbox_status create() {
    config = {sizeof config, sizeof(ccbox_option), options.data(), options.size()};
    return boundary<scripted>::create(&table, &config, &instance, &error.text);
  }
  void option(std::string_view key, std::string_view value) { options.push_back({str(key), str(value)}); }
  const ccbox_backend* backend() {
    return static_cast<const ccbox_backend*>(
        boundary<scripted>::get_extension(instance, str(CCBOX_BACKEND_EXTENSION)));
  }
};

// A sink that does nothing; members that a test needs are replaced.
ccbox_plan_sink quiet_sink() {
  ccbox_plan_sink sink{};
  sink.size = sizeof sink;
  sink.argument = [](void*, ccbox_str) {};
  sink.environment = [](void*, ccbox_str, ccbox_str) {};
  sink.file = [](void*, ccbox_str, ccbox_str) { return std::int32_t{5}; };
  sink.open_path = [](void*, ccbox_str) { return std::int32_t{-1}; };
  sink.layer = [](void*, std::size_t, ccbox_str) {};
  sink.enforces = [](void*, std::uint64_t) {};
  sink.flags = [](void*, std::uint32_t) {};
  return sink;
}

ccbox_plan_request empty_request() {
  ccbox_plan_request request{};
  request.size = sizeof request;
  request.rule_stride = sizeof(ccbox_rule);
  return request;
}

}  // namespace

TEST_CASE("a created plugin answers the backend extension and its own, and nothing else") {
  scene s;
  REQUIRE(s.create() == CCBOX_OK);
  CHECK(alive == 1);
  REQUIRE(s.backend());
  CHECK(view(s.backend()->kind) == "native");
  CHECK(boundary<scripted>::get_extension(s.instance, str("test.extra/1")) == s.instance);
  CHECK(boundary<scripted>::get_extension(s.instance, str("test.extra/2")) == nullptr);
  CHECK(boundary<scripted>::get_extension(s.instance, {nullptr, 0}) == nullptr);
  boundary<scripted>::destroy(s.instance);
  s.instance = nullptr;
  CHECK(alive == 0);
}

TEST_CASE("an option that the constructor did not ask for is refused by name, and nothing is left behind") {
  scene s;
  on_create = [](const host&, options& o) { o.text("tool"); };
  s.option("tool", "x");
  s.option("tol", "y");
  CHECK(s.create() == CCBOX_INVALID);
  CHECK(s.error.str() == "unknown option 'tol'; known options: tool");
  CHECK(s.instance == nullptr);
  CHECK(alive == 0);
}

TEST_CASE("an option given twice is refused") {
  scene s;
  s.option("a", "1");
  s.option("a", "2");
  CHECK(s.create() == CCBOX_INVALID);
  CHECK(s.error.str() == "option 'a' is given twice");
}

TEST_CASE("options are read strictly") {
  // What `read` made of the option's value, or the refusal.
  auto outcome = [](std::string_view value, std::function<std::string(options&)> read) {
    scene s;
    std::string got;
    on_create = [&](const host&, options& o) { got = read(o); };
    s.option("k", value);
    return s.create() == CCBOX_OK ? got : s.error.str();
  };
  const auto flag = [](options& o) { return std::string(o.boolean("k", false) ? "on" : "off"); };
  CHECK(outcome("true", flag) == "on");
  CHECK(outcome("false", flag) == "off");
  CHECK(outcome("yes", flag) == "option 'k' is 'yes', expected true or false");
  const auto number = [](options& o) { return std::to_string(o.integer("k", 1, 0, 9)); };
  CHECK(outcome("7", number) == "7");
  for (const std::string bad : {"10", "-1", "7x", "", "99999999999999999999"})
    CHECK(outcome(bad, number) == "option 'k' is '" + bad + "', expected a whole number from 0 to 9");
  const auto choice = [](options& o) { return o.choice("k", {"kvm", "tcg"}); };
  CHECK(outcome("tcg", choice) == "tcg");
  CHECK(outcome("TCG", choice) == "option 'k' is 'TCG', expected one of: kvm, tcg");
}

TEST_CASE("options that are absent take the fallback") {
  scene s;
  on_create = [](const host&, options& o) {
    CHECK(o.text("a", "x") == "x");
    CHECK(o.boolean("b", true));
    CHECK(o.integer("c", 3, 0, 9) == 3);
    CHECK(o.choice("d", {"first", "second"}) == "first");
  };
  CHECK(s.create() == CCBOX_OK);
}

TEST_CASE("every exception ends at the boundary with a status and a text") {
  scene s;
  REQUIRE(s.create() == CCBOX_OK);
  const auto request = empty_request();
  const auto sink = quiet_sink();
  auto plan = [&] {
    const auto status = s.backend()->plan(s.instance, &request, &sink, &s.error.text);
    return std::to_string(status) + " " + s.error.str();
  };
  on_plan = [](auto&, auto&) { throw failure(CCBOX_UNENFORCEABLE, "rule\nbroken"); };
  CHECK(plan() == "3 rule broken");
  on_plan = [](auto&, auto&) { throw std::logic_error("bug"); };
  CHECK(plan() == "4 bug");
  on_plan = [](auto&, auto&) { throw 7; };
  CHECK(plan() == "4 an exception of unknown type");
  on_plan = [](auto&, auto&) { throw std::bad_alloc(); };
  CHECK(plan() == "4 out of memory");
  on_plan = [](auto&, auto&) { throw failure(CCBOX_OK, "confused"); };
  CHECK(plan() == "4 confused");
  on_probe = []() -> probe_answer { throw failure(CCBOX_UNAVAILABLE, "no tool"); };
  ccbox_probe_request probe_request{sizeof probe_request, CCBOX_PROBE_QUICK, {}};
  ccbox_probe_result result{};
  result.size = sizeof result;
  CHECK(s.backend()->probe(s.instance, &probe_request, &result, &s.error.text) == CCBOX_UNAVAILABLE);
}

TEST_CASE("a probe answer is written into the host's buffers, cut between characters") {
  scene s;
  REQUIRE(s.create() == CCBOX_OK);
  on_probe = [] {
    return probe_answer{true,
                        true,
                        5,
                        "b\xc3\xbc"
                        "cher",
                        "abc",
                        ""};
  };
  ccbox_probe_request request{sizeof request, CCBOX_PROBE_FULL, {}};
  char two[2];
  text_buffer hint, cause;
  ccbox_probe_result result{};
  result.size = sizeof result;
  result.note = {two, sizeof two, 0};
  result.hint = hint.text;
  result.cause = cause.text;
  REQUIRE(s.backend()->probe(s.instance, &request, &result, &s.error.text) == CCBOX_OK);
  CHECK(result.available == 1);
  CHECK(result.requires_install == 1);
  CHECK(result.enforced == 5);
  CHECK(result.note.length == 1);
  CHECK(result.hint.length == 3);
  CHECK(result.cause.length == 0);
}

TEST_CASE("rules are stepped through by the host's stride, and unknown members behind them are skipped") {
  struct newer_rule {
    ccbox_rule rule;
    std::uint64_t future[3];
  };
  std::vector<newer_rule> rules(3);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    rules[i].rule = {CCBOX_KIND_MOUNT,          CCBOX_RULE_EXISTS, 1,
                     str(i == 1 ? "/b" : "/a"), str("/g"),         str("why")};
    rules[i].future[0] = ~std::uint64_t{0};
  }
  auto request = empty_request();
  request.rules = &rules[0].rule;
  request.rule_count = rules.size();
  request.rule_stride = sizeof(newer_rule);
  request.waived = 1;
  const plan_request seen(&request);
  REQUIRE(seen.rules().size() == 3);
  CHECK(seen.rules()[1].path == "/b");
  CHECK(seen.rules()[2].index == 2);
  CHECK(seen.rules()[0].has(CCBOX_RULE_EXISTS));
  CHECK_FALSE(seen.rules()[0].has(CCBOX_RULE_EXISTS | CCBOX_RULE_GLOB));
  CHECK(seen.is_waived(seen.rules()[0]));
}

TEST_CASE("structs smaller than version 1.0 are refused, not read past their end") {
  auto request = empty_request();
  request.size = offsetof(ccbox_plan_request, init_path);
  CHECK_THROWS_AS(plan_request{&request}, failure);
  auto sink = quiet_sink();
  sink.size = offsetof(ccbox_plan_sink, flags);
  CHECK_THROWS_AS(plan_sink{&sink}, failure);
  ccbox_rule rule{};
  request = empty_request();
  request.rules = &rule;
  request.rule_count = 1;
  request.rule_stride = sizeof(ccbox_rule) - 1;
  CHECK_THROWS_AS(plan_request{&request}, failure);
}

TEST_CASE("a host without a service is a host that answers nothing") {
  ccbox_host old{};
  old.size = offsetof(ccbox_host, log);
  const host h(&old);
  h.log(CCBOX_INFO, "lost");
  CHECK(h.emit("s", "t", "{}") == CCBOX_UNAVAILABLE);
  CHECK(h.get_extension("x") == nullptr);
  scene s;
  host(&s.table).log(CCBOX_INFO, "heard");
  CHECK(s.logged == "heard");
}

TEST_CASE("a descriptor that the host refuses to give is an error that names the file") {
  auto table = quiet_sink();
  plan_sink sink(&table);
  CHECK(sink.file("args", "x") == 5);
  CHECK_THROWS_WITH(sink.open_path("/a"), "the host took no further path '/a' into the plan");
}
