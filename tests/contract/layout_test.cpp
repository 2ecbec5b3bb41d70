// The binary layout of the plugin ABI against the snapshots of its versions.
//
// layout-1.N.txt is the layout of minor version N. A released snapshot is never edited. To change the ABI
// legally: append members at the end of a struct that starts with `size` (or has a stride), append constants,
// raise CCBOX_ABI_MINOR, add layout-1.(N+1).txt (this test prints it when it differs), and write docs/abi.md.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "ccbox/plugin.h"

namespace {

struct line {
  std::string name;         // "ccbox_rule.flags", "ccbox_rule", "CCBOX_OK"
  std::string kind;         // struct, member, constant
  unsigned long long a, b;  // struct: size, alignment; member: offset, size; constant: value, 0
  bool operator==(const line&) const = default;
};

line struct_line(std::string name, std::size_t size, std::size_t alignment) {
  return {std::move(name), "struct", size, alignment};
}
line member_line(std::string name, std::size_t offset, std::size_t size) {
  return {std::move(name), "member", offset, size};
}
line constant_line(std::string name, unsigned long long value) {
  return {std::move(name), "constant", value, 0};
}

#define STRUCT(type) struct_line(#type, sizeof(type), alignof(type))
#define MEMBER(type, member) member_line(#type "." #member, offsetof(type, member), sizeof(type::member))
#define CONSTANT(name) constant_line(#name, static_cast<unsigned long long>(name))

std::vector<line> layout() {
  return {
      STRUCT(ccbox_str),
      MEMBER(ccbox_str, ptr),
      MEMBER(ccbox_str, len),
      STRUCT(ccbox_text),
      MEMBER(ccbox_text, ptr),
      MEMBER(ccbox_text, capacity),
      MEMBER(ccbox_text, length),
      STRUCT(ccbox_host),
      MEMBER(ccbox_host, size),
      MEMBER(ccbox_host, abi_minor),
      MEMBER(ccbox_host, ctx),
      MEMBER(ccbox_host, log),
      MEMBER(ccbox_host, emit),
      MEMBER(ccbox_host, get_extension),
      STRUCT(ccbox_option),
      MEMBER(ccbox_option, key),
      MEMBER(ccbox_option, value),
      STRUCT(ccbox_config),
      MEMBER(ccbox_config, size),
      MEMBER(ccbox_config, option_stride),
      MEMBER(ccbox_config, options),
      MEMBER(ccbox_config, option_count),
      STRUCT(ccbox_plugin_descriptor),
      MEMBER(ccbox_plugin_descriptor, size),
      MEMBER(ccbox_plugin_descriptor, abi_minor),
      MEMBER(ccbox_plugin_descriptor, name),
      MEMBER(ccbox_plugin_descriptor, version),
      MEMBER(ccbox_plugin_descriptor, create),
      MEMBER(ccbox_plugin_descriptor, destroy),
      MEMBER(ccbox_plugin_descriptor, get_extension),
      STRUCT(ccbox_probe_request),
      MEMBER(ccbox_probe_request, size),
      MEMBER(ccbox_probe_request, depth),
      MEMBER(ccbox_probe_request, init_path),
      STRUCT(ccbox_probe_result),
      MEMBER(ccbox_probe_result, size),
      MEMBER(ccbox_probe_result, available),
      MEMBER(ccbox_probe_result, requires_install),
      MEMBER(ccbox_probe_result, reserved),
      MEMBER(ccbox_probe_result, enforced),
      MEMBER(ccbox_probe_result, note),
      MEMBER(ccbox_probe_result, hint),
      MEMBER(ccbox_probe_result, cause),
      STRUCT(ccbox_rule),
      MEMBER(ccbox_rule, kind),
      MEMBER(ccbox_rule, flags),
      MEMBER(ccbox_rule, bit),
      MEMBER(ccbox_rule, path),
      MEMBER(ccbox_rule, guest_path),
      MEMBER(ccbox_rule, reason),
      STRUCT(ccbox_plan_request),
      MEMBER(ccbox_plan_request, size),
      MEMBER(ccbox_plan_request, rule_stride),
      MEMBER(ccbox_plan_request, rules),
      MEMBER(ccbox_plan_request, rule_count),
      MEMBER(ccbox_plan_request, required),
      MEMBER(ccbox_plan_request, waived),
      MEMBER(ccbox_plan_request, session_id),
      MEMBER(ccbox_plan_request, workdir),
      MEMBER(ccbox_plan_request, home),
      MEMBER(ccbox_plan_request, tmpdir),
      MEMBER(ccbox_plan_request, network),
      MEMBER(ccbox_plan_request, uid),
      MEMBER(ccbox_plan_request, gid),
      MEMBER(ccbox_plan_request, channel_fd),
      MEMBER(ccbox_plan_request, init_fd),
      MEMBER(ccbox_plan_request, init_path),
      STRUCT(ccbox_plan_sink),
      MEMBER(ccbox_plan_sink, size),
      MEMBER(ccbox_plan_sink, reserved),
      MEMBER(ccbox_plan_sink, ctx),
      MEMBER(ccbox_plan_sink, argument),
      MEMBER(ccbox_plan_sink, environment),
      MEMBER(ccbox_plan_sink, file),
      MEMBER(ccbox_plan_sink, open_path),
      MEMBER(ccbox_plan_sink, layer),
      MEMBER(ccbox_plan_sink, enforces),
      MEMBER(ccbox_plan_sink, flags),
      MEMBER(ccbox_plan_sink, denials),
      STRUCT(ccbox_backend),
      MEMBER(ccbox_backend, size),
      MEMBER(ccbox_backend, reserved),
      MEMBER(ccbox_backend, kind),
      MEMBER(ccbox_backend, probe),
      MEMBER(ccbox_backend, plan),
      STRUCT(ccbox_egress_rule),
      MEMBER(ccbox_egress_rule, action),
      MEMBER(ccbox_egress_rule, flags),
      MEMBER(ccbox_egress_rule, pattern),
      MEMBER(ccbox_egress_rule, origin),
      MEMBER(ccbox_egress_rule, reason),
      STRUCT(ccbox_listener),
      MEMBER(ccbox_listener, kind),
      MEMBER(ccbox_listener, fd),
      MEMBER(ccbox_listener, address),
      STRUCT(ccbox_egress_request),
      MEMBER(ccbox_egress_request, size),
      MEMBER(ccbox_egress_request, rule_stride),
      MEMBER(ccbox_egress_request, rules),
      MEMBER(ccbox_egress_request, rule_count),
      MEMBER(ccbox_egress_request, listener_stride),
      MEMBER(ccbox_egress_request, option_stride),
      MEMBER(ccbox_egress_request, listeners),
      MEMBER(ccbox_egress_request, listener_count),
      MEMBER(ccbox_egress_request, options),
      MEMBER(ccbox_egress_request, option_count),
      MEMBER(ccbox_egress_request, session_id),
      MEMBER(ccbox_egress_request, net_connect),
      STRUCT(ccbox_egress_sink),
      MEMBER(ccbox_egress_sink, size),
      MEMBER(ccbox_egress_sink, reserved),
      MEMBER(ccbox_egress_sink, ctx),
      MEMBER(ccbox_egress_sink, endpoint),
      MEMBER(ccbox_egress_sink, environment),
      STRUCT(ccbox_egress_decision),
      MEMBER(ccbox_egress_decision, size),
      MEMBER(ccbox_egress_decision, allowed),
      MEMBER(ccbox_egress_decision, reason),
      MEMBER(ccbox_egress_decision, rule),
      MEMBER(ccbox_egress_decision, text),
      STRUCT(ccbox_egress),
      MEMBER(ccbox_egress, size),
      MEMBER(ccbox_egress, reserved),
      MEMBER(ccbox_egress, check_rule),
      MEMBER(ccbox_egress, open),
      MEMBER(ccbox_egress, decide),
      MEMBER(ccbox_egress, counters),
      MEMBER(ccbox_egress, close),
      STRUCT(ccbox_violation),
      MEMBER(ccbox_violation, size),
      MEMBER(ccbox_violation, reserved),
      MEMBER(ccbox_violation, exec_id),
      MEMBER(ccbox_violation, count),
      MEMBER(ccbox_violation, action),
      MEMBER(ccbox_violation, target),
      MEMBER(ccbox_violation, suggested_capability),
      MEMBER(ccbox_violation, raw),
      STRUCT(ccbox_monitor_request),
      MEMBER(ccbox_monitor_request, size),
      MEMBER(ccbox_monitor_request, flags),
      MEMBER(ccbox_monitor_request, rules),
      MEMBER(ccbox_monitor_request, rule_count),
      MEMBER(ccbox_monitor_request, rule_stride),
      MEMBER(ccbox_monitor_request, reserved),
      MEMBER(ccbox_monitor_request, enforced),
      MEMBER(ccbox_monitor_request, session_id),
      MEMBER(ccbox_monitor_request, workdir),
      STRUCT(ccbox_monitor_sink),
      MEMBER(ccbox_monitor_sink, size),
      MEMBER(ccbox_monitor_sink, reserved),
      MEMBER(ccbox_monitor_sink, ctx),
      MEMBER(ccbox_monitor_sink, violation),
      STRUCT(ccbox_monitor),
      MEMBER(ccbox_monitor, size),
      MEMBER(ccbox_monitor, reserved),
      MEMBER(ccbox_monitor, open),
      MEMBER(ccbox_monitor, denial),
      MEMBER(ccbox_monitor, output),
      MEMBER(ccbox_monitor, flush),
      MEMBER(ccbox_monitor, close),
      CONSTANT(CCBOX_OK),
      CONSTANT(CCBOX_INVALID),
      CONSTANT(CCBOX_UNAVAILABLE),
      CONSTANT(CCBOX_UNENFORCEABLE),
      CONSTANT(CCBOX_FAILED),
      CONSTANT(CCBOX_TOO_LARGE),
      CONSTANT(CCBOX_DEBUG),
      CONSTANT(CCBOX_INFO),
      CONSTANT(CCBOX_WARN),
      CONSTANT(CCBOX_ERROR),
      CONSTANT(CCBOX_PROBE_QUICK),
      CONSTANT(CCBOX_PROBE_FULL),
      CONSTANT(CCBOX_KIND_MOUNT),
      CONSTANT(CCBOX_KIND_READ_DENY),
      CONSTANT(CCBOX_KIND_WRITE_DENY),
      CONSTANT(CCBOX_KIND_NAME_DENY),
      CONSTANT(CCBOX_KIND_NAME_EXEMPT),
      CONSTANT(CCBOX_KIND_EXEC_DENY),
      CONSTANT(CCBOX_KIND_EXEC_GRANT),
      CONSTANT(CCBOX_RULE_READ_ONLY),
      CONSTANT(CCBOX_RULE_GLOB),
      CONSTANT(CCBOX_RULE_EXISTS),
      CONSTANT(CCBOX_RULE_DIRECTORY),
      CONSTANT(CCBOX_RULE_SYMLINK),
      CONSTANT(CCBOX_RULE_SYSTEM),
      CONSTANT(CCBOX_RULE_TARGET),
      CONSTANT(CCBOX_RULE_VETTED_GIT_CONFIG),
      CONSTANT(CCBOX_RULE_NEW_ALLOWED),
      CONSTANT(CCBOX_NETWORK_PROXY_ONLY),
      CONSTANT(CCBOX_NETWORK_HOST),
      CONSTANT(CCBOX_PLAN_IDENTITY_USERNS),
      CONSTANT(CCBOX_PLAN_UNCONFINED),
      CONSTANT(CCBOX_RULE_FS_BINDS_ONLY),
      CONSTANT(CCBOX_RULE_FS_READ_DENY),
      CONSTANT(CCBOX_RULE_FS_WRITE_DENY),
      CONSTANT(CCBOX_RULE_FS_NAME_DENY),
      CONSTANT(CCBOX_RULE_EXEC_DENY),
      CONSTANT(CCBOX_RULE_NET_PROXY_ONLY),
      CONSTANT(CCBOX_RULE_PID_ISOLATION),
      CONSTANT(CCBOX_RULE_RESOURCE_LIMITS),
      CONSTANT(CCBOX_RULE_KERNEL_BOUNDARY),
      CONSTANT(CCBOX_EGRESS_ALLOW),
      CONSTANT(CCBOX_EGRESS_DENY),
      CONSTANT(CCBOX_EGRESS_FLOOR),
      CONSTANT(CCBOX_EGRESS_RESOLVED),
      CONSTANT(CCBOX_EGRESS_GIT_HOST),
      CONSTANT(CCBOX_LISTENER_HTTP),
      CONSTANT(CCBOX_LISTENER_SOCKS),
      CONSTANT(CCBOX_EGRESS_APPEND),
      CONSTANT(CCBOX_MONITOR_DENIALS_REPORTED),
  };
}

std::string text_of(const std::vector<line>& lines) {
  std::ostringstream out;
  for (const auto& l : lines) {
    out << l.kind << ' ' << l.name << ' ' << l.a;
    if (l.kind != "constant") out << ' ' << l.b;
    out << '\n';
  }
  return out.str();
}

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  REQUIRE_MESSAGE(in.good(), path);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

std::vector<line> parse(const std::string& text) {
  std::vector<line> out;
  std::istringstream in(text);
  for (std::string row; std::getline(in, row);) {
    if (row.empty() || row[0] == '#') continue;
    std::istringstream fields(row);
    line l{"", "", 0, 0};
    fields >> l.kind >> l.name >> l.a;
    REQUIRE_MESSAGE(!fields.fail(), row);
    if (l.kind != "constant") {
      fields >> l.b;
      REQUIRE_MESSAGE(!fields.fail(), row);
    }
    out.push_back(l);
  }
  return out;
}

std::string snapshot_path(int minor) {
  return CCBOX_TEST_SOURCE_DIR "/tests/contract/layout-1." + std::to_string(minor) + ".txt";
}

// The header without its comments.
std::string header_code() {
  return std::regex_replace(read_file(CCBOX_TEST_SOURCE_DIR "/kernel/abi/ccbox/plugin.h"),
                            std::regex(R"(/\*[^*]*\*+([^/*][^*]*\*+)*/)"), " ");
}

// What the header declares, found by reading it: the list above cannot forget anything.
std::set<std::string> declared_names() {
  const std::string code = header_code();
  std::set<std::string> names;
  const auto end = std::sregex_iterator();
  const std::regex structs(R"(typedef struct (\w+) \{([^}]*)\} \w+;)");
  for (auto s = std::sregex_iterator(code.begin(), code.end(), structs); s != end; ++s) {
    const std::string type = (*s)[1], body = (*s)[2];
    names.insert(type);
    const std::regex members(R"(\(\*(\w+)\)\s*\([^;]*;|(\w+)\s*;)");
    for (auto m = std::sregex_iterator(body.begin(), body.end(), members); m != end; ++m)
      names.insert(type + "." + ((*m)[1].matched ? (*m)[1] : (*m)[2]).str());
  }
  const std::regex constants(R"((CCBOX_\w+) = |#define (CCBOX_RULE_\w+) \(\(uint64_t)");
  for (auto c = std::sregex_iterator(code.begin(), code.end(), constants); c != end; ++c)
    names.insert(((*c)[1].matched ? (*c)[1] : (*c)[2]).str());
  return names;
}

}  // namespace

TEST_CASE("the layout list names every struct, member and constant of the ABI header") {
  std::set<std::string> listed;
  for (const auto& l : layout())
    listed.insert(l.name);
  const auto declared = declared_names();
  CHECK(declared.size() > 100);
  for (const auto& name : declared)
    CHECK_MESSAGE(listed.count(name) == 1, "not in the list: " << name);
  for (const auto& name : listed)
    CHECK_MESSAGE(declared.count(name) == 1, "not in the header: " << name);
}

TEST_CASE("the layout of this ABI version is the one of its snapshot") {
  const auto path = snapshot_path(CCBOX_ABI_MINOR);
  const auto now = text_of(layout());
  CHECK(text_of(parse(read_file(path))) == now);
}

TEST_CASE(
    "every older snapshot is a prefix of the present layout: nothing moved, shrank or changed its value") {
  std::map<std::string, line> now;
  for (const auto& l : layout())
    now.emplace(l.name, l);
  // Passed by value or without a size and stride: these can never grow.
  const std::set<std::string> closed = {"ccbox_str", "ccbox_text"};
  for (int minor = 0; minor <= CCBOX_ABI_MINOR; ++minor) {
    CAPTURE(minor);
    for (const auto& old : parse(read_file(snapshot_path(minor)))) {
      CAPTURE(old.name);
      REQUIRE(now.count(old.name) == 1);
      const auto& l = now.at(old.name);
      CHECK(l.kind == old.kind);
      CHECK(l.b == old.b);
      if (l.kind == "struct" && !closed.count(l.name))
        CHECK(l.a >= old.a);
      else
        CHECK(l.a == old.a);
    }
  }
}

TEST_CASE("a struct that may grow starts with its size, or is stepped over by a stride") {
  const std::set<std::string> without = {"ccbox_str",  "ccbox_text",        "ccbox_option",
                                         "ccbox_rule", "ccbox_egress_rule", "ccbox_listener"};
  const auto all = layout();
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    if (all[i].kind != "struct" || without.count(all[i].name)) continue;
    CHECK(all[i + 1] == line{all[i].name + ".size", "member", 0, 4});
  }
}

TEST_CASE("CCBOX_HAS sees a member only when all of it lies inside the declared size") {
  ccbox_plan_request request = {};
  request.size = offsetof(ccbox_plan_request, init_fd);
  CHECK_FALSE(CCBOX_HAS(&request, ccbox_plan_request, init_fd));
  request.size += sizeof(std::int32_t) - 1;
  CHECK_FALSE(CCBOX_HAS(&request, ccbox_plan_request, init_fd));
  request.size += 1;
  CHECK(CCBOX_HAS(&request, ccbox_plan_request, init_fd));
  CHECK_FALSE(CCBOX_HAS(&request, ccbox_plan_request, init_path));
}
