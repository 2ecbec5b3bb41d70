#include "backend.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <functional>
#include <stdexcept>

using namespace ccbox;

// A plugin whose answers each test scripts; what it is asked arrives as the ABI has it.
struct ccbox_plugin {
  std::function<ccbox_status(const ccbox_probe_request&, ccbox_probe_result&, ccbox_text&)> probe;
  std::function<ccbox_status(const ccbox_plan_request&, const ccbox_plan_sink&, ccbox_text&)> plan;
};

namespace {

ccbox_str str(std::string_view text) {
  return {text.data(), text.size()};
}
std::string_view view(ccbox_str text) {
  return {text.ptr, text.len};
}

void write(ccbox_text& to, std::string_view text) {
  text.copy(to.ptr, to.capacity);
  to.length = std::min(text.size(), to.capacity);
}

struct scene {
  ccbox_plugin plugin;
  ccbox_backend table{sizeof table, 0, str("native"),
                      [](ccbox_plugin* p, const ccbox_probe_request* request, ccbox_probe_result* result,
                         ccbox_text* error) { return p->probe(*request, *result, *error); },
                      [](ccbox_plugin* p, const ccbox_plan_request* request, const ccbox_plan_sink* sink,
                         ccbox_text* error) { return p->plan(*request, *sink, *error); }};
  policy asked;

  backend made() { return backend("fake", "1.0", &plugin, &table); }

  // The plan of a plugin that says `more` beside a good argv and what it enforces.
  result<plan> plan_of(std::function<void(const ccbox_plan_sink&)> more, rule_bits enforced = 0) {
    plugin.plan = [&](auto&, const ccbox_plan_sink& sink, auto&) -> ccbox_status {
      sink.argument(sink.ctx, str("/bin/start"));
      sink.enforces(sink.ctx, enforced);
      more(sink);
      return CCBOX_OK;
    };
    return made().make_plan(asked, "/init");
  }
  std::string refusal_of(std::function<void(const ccbox_plan_sink&)> more, rule_bits enforced = 0) {
    const auto p = plan_of(std::move(more), enforced);
    return p ? "accepted" : p.error().what;
  }
};

const std::string unusable = "backend 'fake': its plan cannot be used: ";

}  // namespace

TEST_CASE("a probe's answer arrives as values") {
  scene s;
  s.plugin.probe = [](auto& request, auto& answer, auto&) {
    CHECK(request.depth == CCBOX_PROBE_FULL);
    answer.available = 1;
    answer.requires_install = 1;
    answer.enforced = CCBOX_RULE_FS_READ_DENY;
    write(answer.note, "note");
    write(answer.hint, "hint");
    write(answer.cause, "cause");
    return CCBOX_OK;
  };
  const auto probe = s.made().probe(CCBOX_PROBE_FULL);
  REQUIRE(probe.has_value());
  CHECK(probe->available);
  CHECK(probe->requires_install);
  CHECK(probe->enforced == CCBOX_RULE_FS_READ_DENY);
  CHECK(probe->note == "note");
  CHECK(probe->hint == "hint");
  CHECK(probe->cause == "cause");
}

TEST_CASE(
    "rule bits that this kernel does not know, and those of a backend that is not there, count for nothing") {
  scene s;
  std::uint32_t available = 1;
  s.plugin.probe = [&](auto&, auto& answer, auto&) {
    answer.available = available;
    answer.enforced = ~std::uint64_t{0};
    return CCBOX_OK;
  };
  CHECK(s.made().probe(CCBOX_PROBE_QUICK)->enforced == 0x1ff);
  available = 0;
  CHECK(s.made().probe(CCBOX_PROBE_QUICK)->enforced == 0);
}

TEST_CASE("a probe's bad text is an error that names the plugin and the text") {
  scene s;
  s.plugin.probe = [](auto&, auto& answer, auto&) {
    write(answer.note, "caf\xe9");
    return CCBOX_OK;
  };
  CHECK(s.made().probe(CCBOX_PROBE_QUICK).error().what ==
        "backend 'fake': its note is not UTF-8: 'caf\\xe9'");
  s.plugin.probe = [](auto&, auto& answer, auto&) {
    answer.hint.length = answer.hint.capacity + 1;
    return CCBOX_OK;
  };
  CHECK(s.made().probe(CCBOX_PROBE_QUICK).error().what ==
        "backend 'fake': its hint is longer than the buffer for it");
  s.plugin.probe = [](auto&, auto& answer, auto&) {
    write(answer.note, "two\nlines\x1b[0m");
    return CCBOX_OK;
  };
  CHECK(s.made().probe(CCBOX_PROBE_QUICK)->note == "two\\nlines\\x1b[0m");
}

TEST_CASE("a failed call keeps its status and its reason") {
  scene s;
  ccbox_status status = CCBOX_UNAVAILABLE;
  s.plugin.probe = [&](auto&, auto&, auto& text) {
    write(text, "no \xff tool");
    return status;
  };
  auto probe = s.made().probe(CCBOX_PROBE_QUICK);
  CHECK(probe.error().code == error_code::unavailable);
  CHECK(probe.error().what == "backend 'fake': no \\xff tool");
  s.plugin.probe = [&](auto&, auto&, auto&) { return status; };
  const std::pair<ccbox_status, error_code> meanings[] = {{CCBOX_INVALID, error_code::invalid_argument},
                                                          {CCBOX_UNENFORCEABLE, error_code::unenforceable},
                                                          {CCBOX_FAILED, error_code::failed},
                                                          {CCBOX_TOO_LARGE, error_code::too_large},
                                                          {99, error_code::failed},
                                                          {-1, error_code::failed}};
  for (const auto& [given, code] : meanings) {
    status = given;
    probe = s.made().probe(CCBOX_PROBE_QUICK);
    CHECK(probe.error().code == code);
    CHECK(probe.error().what ==
          "backend 'fake': probe failed with status " + std::to_string(given) + " and no reason");
  }
}

TEST_CASE("an exception that leaves the plugin is an error, not the end of the process") {
  scene s;
  s.plugin.probe = [](auto&, auto&, auto&) -> ccbox_status { throw std::runtime_error("oops"); };
  CHECK(s.made().probe(CCBOX_PROBE_QUICK).error().what == "backend 'fake': an exception left the plugin");
  s.plugin.plan = [](auto&, auto&, auto&) -> ccbox_status { throw 1; };
  CHECK(s.made().make_plan(s.asked, "/init").error().what == "backend 'fake': an exception left the plugin");
}

TEST_CASE("a table with holes, one that is too small, and one of no known kind are refused before any call") {
  scene s;
  CHECK(s.made().validate().has_value());
  s.table.kind = str("docker");
  CHECK(s.made().validate().error().what == "backend 'fake': its kind is none of native, microvm, none");
  s.table.kind = str("native");
  s.table.plan = nullptr;
  CHECK(s.made().validate().has_error());
  CHECK(s.made().make_plan(s.asked, "/init").has_error());
  CHECK(s.made().probe(CCBOX_PROBE_QUICK).has_error());
  s.table.size = 8;
  CHECK(s.made().validate().has_error());
  CHECK(backend("fake", "1.0", &s.plugin, nullptr).validate().has_error());
}

TEST_CASE("the policy's rules arrive in order, with their flags, bits and texts") {
  scene s;
  rule mount;
  mount.kind = rule_kind::mount;
  mount.origin = rule_origin::system;
  mount.bit = CCBOX_RULE_FS_BINDS_ONLY;
  mount.path = "/usr";
  mount.guest_path = "/usr";
  mount.read_only = true;
  mount.type = path_type::directory;
  mount.reason = "system";
  rule name;
  name.kind = rule_kind::name_deny;
  name.bit = CCBOX_RULE_FS_NAME_DENY;
  name.path = "*.key";
  name.guest_path = "/work";
  name.glob = true;
  rule target;
  target.kind = rule_kind::read_deny;
  target.bit = CCBOX_RULE_FS_READ_DENY;
  target.path = "/x";
  target.is_target = true;
  target.type = path_type::symlink;
  s.asked.rules = {mount, name, target};
  s.asked.spec.session_id = "s1";
  s.asked.workdir = "/work";
  s.asked.home = "/home/u";
  s.asked.tmpdir = "/tmp";
  s.asked.waived = CCBOX_RULE_NET_PROXY_ONLY;
  s.plugin.plan = [](const ccbox_plan_request& request, const ccbox_plan_sink& sink, auto&) -> ccbox_status {
    CHECK(request.size == sizeof request);
    CHECK(request.rule_stride == sizeof(ccbox_rule));
    CHECK(request.rule_count == 3);
    if (request.rule_count != 3) return CCBOX_FAILED;
    CHECK(request.rules[0].kind == CCBOX_KIND_MOUNT);
    CHECK(request.rules[0].flags ==
          (CCBOX_RULE_READ_ONLY | CCBOX_RULE_EXISTS | CCBOX_RULE_DIRECTORY | CCBOX_RULE_SYSTEM));
    CHECK(view(request.rules[0].reason) == "system");
    CHECK(request.rules[1].kind == CCBOX_KIND_NAME_DENY);
    CHECK(request.rules[1].flags == CCBOX_RULE_GLOB);
    CHECK(request.rules[1].bit == CCBOX_RULE_FS_NAME_DENY);
    CHECK(view(request.rules[1].guest_path) == "/work");
    CHECK(request.rules[2].flags == (CCBOX_RULE_EXISTS | CCBOX_RULE_SYMLINK | CCBOX_RULE_TARGET));
    CHECK(view(request.session_id) == "s1");
    CHECK(view(request.workdir) == "/work");
    CHECK(view(request.home) == "/home/u");
    CHECK(view(request.tmpdir) == "/tmp");
    CHECK(view(request.init_path) == "/init");
    CHECK(request.waived == CCBOX_RULE_NET_PROXY_ONLY);
    CHECK(request.network == CCBOX_NETWORK_HOST);
    CHECK(request.channel_fd == 3);
    CHECK(request.init_fd == 4);
    CHECK(request.uid == ::geteuid());
    sink.argument(sink.ctx, str("/bin/start"));
    return CCBOX_OK;
  };
  CHECK(s.made().make_plan(s.asked, "/init").has_value());
}

TEST_CASE("the network is the host's only where net_proxy_only was given up") {
  scene s;
  ccbox_network seen = 99;
  s.plugin.plan = [&](const ccbox_plan_request& request, const ccbox_plan_sink& sink, auto&) -> ccbox_status {
    seen = request.network;
    sink.argument(sink.ctx, str("/bin/start"));
    return CCBOX_OK;
  };
  REQUIRE(s.made().make_plan(s.asked, "/init").has_value());
  CHECK(seen == CCBOX_NETWORK_PROXY_ONLY);
}

TEST_CASE("a plan is collected in the order in which it was said") {
  scene s;
  s.asked.rules.resize(2);
  const auto p = s.plan_of([](const ccbox_plan_sink& sink) {
    sink.argument(sink.ctx, str("--args"));
    CHECK(sink.file(sink.ctx, str("args"), str(std::string_view("a\0b", 3))) == 5);
    CHECK(sink.open_path(sink.ctx, str("/work")) == 6);
    CHECK(sink.file(sink.ctx, str("more"), {nullptr, 0}) == 7);
    sink.argument(sink.ctx, {nullptr, 0});
    sink.environment(sink.ctx, str("A"), str("x=y"));
    sink.environment(sink.ctx, str("B"), {nullptr, 0});
    sink.layer(sink.ctx, 1, str("mount"));
  });
  REQUIRE(p.has_value());
  CHECK(p->plugin == "fake");
  CHECK(p->kind == "native");
  CHECK(p->argv == std::vector<std::string>{"/bin/start", "--args", ""});
  CHECK(p->env == std::vector<std::pair<std::string, std::string>>{{"A", "x=y"}, {"B", ""}});
  REQUIRE(p->files.size() == 2);
  CHECK(p->files[0].bytes == std::string("a\0b", 3));
  CHECK(p->files[1].number == 7);
  REQUIRE(p->paths.size() == 1);
  CHECK(p->paths[0].host_path == "/work");
  CHECK(p->layers == std::vector<std::string>{"", "mount"});
  CHECK_FALSE(p->unconfined);
}

TEST_CASE("an argv that is empty or relative is refused") {
  scene s;
  s.plugin.plan = [](auto&, auto&, auto&) { return CCBOX_OK; };
  CHECK(s.made().make_plan(s.asked, "/init").error().what == unusable + "its argv is empty");
  s.plugin.plan = [](auto&, const ccbox_plan_sink& sink, auto&) {
    sink.argument(sink.ctx, str("bwrap"));
    return CCBOX_OK;
  };
  CHECK(s.made().make_plan(s.asked, "/init").error().what ==
        unusable + "argv[0] is not an absolute path: 'bwrap'");
}

TEST_CASE("a piece of a plan that cannot be started is refused, and the first such piece is the one named") {
  scene s;
  s.asked.rules.resize(1);
  const auto nul = std::string_view("a\0b", 3);
  using sink_ref = const ccbox_plan_sink&;
  CHECK(s.refusal_of([&](sink_ref k) { k.argument(k.ctx, str(nul)); }) ==
        unusable + "argument 1 contains a NUL byte: 'a\\x00b'");
  CHECK(s.refusal_of([](sink_ref k) {
    k.argument(k.ctx, {nullptr, 7});
  }) == unusable + "an argument has a length but no bytes");
  const std::string huge(128 * 1024, 'x');
  CHECK(s.refusal_of([&](sink_ref k) { k.argument(k.ctx, str(huge)); }) ==
        unusable + "argument 1 is longer than 128 KiB");
  CHECK(s.refusal_of([](sink_ref k) { k.environment(k.ctx, str("A=B"), str("x")); }) ==
        unusable + "a variable is called 'A=B'");
  CHECK(s.refusal_of([](sink_ref k) { k.environment(k.ctx, str(""), str("x")); }) ==
        unusable + "a variable is called ''");
  CHECK(s.refusal_of([&](sink_ref k) { k.environment(k.ctx, str("A"), str(nul)); }) ==
        unusable + "the value of 'A' contains a NUL byte");
  CHECK(s.refusal_of([](sink_ref k) {
    k.environment(k.ctx, str("A"), str("1"));
    k.environment(k.ctx, str("A"), str("2"));
  }) == unusable + "the variable 'A' is given twice");
  CHECK(s.refusal_of([](sink_ref k) { CHECK(k.open_path(k.ctx, str("rel")) == -1); }) ==
        unusable + "a path to open is not absolute, or no path: 'rel'");
  CHECK(s.refusal_of([](sink_ref k) { CHECK(k.file(k.ctx, str("a b"), str("")) == -1); }) ==
        unusable + "a file's label is 'a b'");
  CHECK(s.refusal_of([](sink_ref k) { k.layer(k.ctx, 1, str("x")); }) ==
        unusable + "a layer for rule 1 of 1");
  CHECK(s.refusal_of([](sink_ref k) { k.layer(k.ctx, 0, str("\xff")); }) ==
        unusable + "a layer's text is not UTF-8: '\\xff'");
  CHECK(s.refusal_of([](sink_ref k) { k.enforces(k.ctx, 1); }) ==
        unusable + "it says twice what it enforces");
  CHECK(s.refusal_of([](sink_ref k) {
    k.layer(k.ctx, 9, str("x"));
    k.environment(k.ctx, str(""), str("x"));
  }) == unusable + "a layer for rule 9 of 1");
}

TEST_CASE("a plan without end is refused") {
  scene s;
  const std::string block(8 << 20, 'x');
  const auto p = s.plan_of([&](const ccbox_plan_sink& sink) {
    for (int i = 0; i < 5; ++i)
      sink.file(sink.ctx, str("big"), str(block));
  });
  CHECK(p.error().code == error_code::too_large);
  const auto q = s.plan_of([&](const ccbox_plan_sink& sink) {
    for (int i = 0; i < 20'000; ++i)
      sink.open_path(sink.ctx, str("/a"));
  });
  CHECK(q.error().code == error_code::too_large);
  const auto r = s.plan_of([&](const ccbox_plan_sink& sink) {
    for (int i = 0; i < 300'000; ++i)
      sink.argument(sink.ctx, {nullptr, 0});
  });
  CHECK(r.error().code == error_code::too_large);
}

TEST_CASE("a plan that does not enforce what is required is refused with rule, example and remedy") {
  scene s;
  s.asked.required = CCBOX_RULE_FS_BINDS_ONLY | CCBOX_RULE_FS_NAME_DENY;
  rule exempt;
  exempt.kind = rule_kind::name_exempt;
  exempt.bit = CCBOX_RULE_FS_NAME_DENY;
  exempt.path = "**/.git/hooks/*.sample";
  rule name;
  name.kind = rule_kind::name_deny;
  name.bit = CCBOX_RULE_FS_NAME_DENY;
  name.path = "*.key";
  name.reason = "private keys (config/policy.yaml:40:5)";
  s.asked.rules = {exempt, name};
  const auto p = s.plan_of([](auto&) {}, CCBOX_RULE_FS_BINDS_ONLY);
  REQUIRE(p.has_error());
  CHECK(p.error().code == error_code::unenforceable);
  CHECK(
      p.error().what ==
      "backend 'fake' cannot enforce fs_name_deny (files with protected names cannot be created), needed for "
      "'*.key': private keys (config/policy.yaml:40:5)");
  CHECK(p.error().hint ==
        "use a backend that enforces it, or give this one rule up with --without fs_name_deny");
  CHECK(s.plan_of([](auto&) {}, s.asked.required).has_value());
}

TEST_CASE("a rule that cannot be given up is not offered to be") {
  scene s;
  s.asked.required = CCBOX_RULE_PID_ISOLATION;
  CHECK(s.plan_of([](auto&) {}).error().hint == "use a backend that enforces it");
  s.asked.required = CCBOX_RULE_FS_NAME_DENY | CCBOX_RULE_EXEC_DENY;
  const auto p = s.plan_of([](auto&) {});
  CHECK(p.error().what.find("; nor exec_deny (") != std::string::npos);
  CHECK(p.error().hint ==
        "use a backend that enforces them, or give these rules up with --without fs_name_deny --without "
        "exec_deny");
}

TEST_CASE("bits that were given up and bits that nobody knows do not count as enforced") {
  scene s;
  s.asked.waived = CCBOX_RULE_FS_NAME_DENY;
  const auto p = s.plan_of([](auto&) {}, ~rule_bits{0});
  REQUIRE(p.has_value());
  CHECK(p->enforced == (0x1ff & ~CCBOX_RULE_FS_NAME_DENY));
}

TEST_CASE("a required bit that this kernel does not know is never enforced") {
  scene s;
  s.asked.required = rule_bits{1} << 40;
  const auto p = s.plan_of([](auto&) {}, ~rule_bits{0});
  REQUIRE(p.has_error());
  CHECK(p.error().code == error_code::unenforceable);
  CHECK(p.error().what == "backend 'fake' cannot enforce bit 40");
  CHECK(p.error().hint == "use a backend that enforces it");
}

TEST_CASE("only a backend of kind none may plan without a boundary, and it may not claim one") {
  scene s;
  const auto unconfined = [](const ccbox_plan_sink& sink) { sink.flags(sink.ctx, CCBOX_PLAN_UNCONFINED); };
  CHECK(s.plan_of(unconfined).error().what ==
        "backend 'fake': it is of kind native but plans without a boundary");
  s.table.kind = str("none");
  CHECK(s.plan_of(unconfined).value().unconfined);
  CHECK(s.plan_of(unconfined, CCBOX_RULE_RESOURCE_LIMITS).has_value());
  CHECK(s.plan_of(unconfined, CCBOX_RULE_FS_READ_DENY).error().what ==
        "backend 'fake': it plans without a boundary but claims fs_read_deny");
}

TEST_CASE("an identity user namespace is for a root caller only") {
  scene s;
  const auto p =
      s.plan_of([](const ccbox_plan_sink& sink) { sink.flags(sink.ctx, CCBOX_PLAN_IDENTITY_USERNS); });
  CHECK(p.has_value() == (::geteuid() == 0));
}

TEST_CASE("a plan flag of a later version is refused: isolation may rest on it") {
  scene s;
  const auto p = s.plan_of([](const ccbox_plan_sink& sink) { sink.flags(sink.ctx, 1u << 20); });
  REQUIRE(p.has_error());
  CHECK(p.error().code == error_code::unenforceable);
  CHECK(p.error().what == unusable + "it sets the plan flags 0x100000, which this version does not know");
}

TEST_CASE("a plan of 10,000 mounts is carried") {
  scene s;
  s.asked.rules.resize(10'000);
  const auto p = s.plan_of([](const ccbox_plan_sink& sink) {
    for (std::size_t i = 0; i < 10'000; ++i) {
      sink.open_path(sink.ctx, str("/a"));
      sink.layer(sink.ctx, i, str("mount"));
    }
  });
  REQUIRE(p.has_value());
  CHECK(p->paths.size() == 10'000);
  CHECK(p->paths.back().number == 10'004);
}
