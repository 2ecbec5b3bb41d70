#include "policy.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "existing_matches.hpp"
#include "support/policy_bench.hpp"

using namespace ccbox;
using namespace ccbox::test;
namespace fs = std::filesystem;

TEST_CASE("the standard dispatch policy requires every rule of the platform") {
  policy_bench bench;
  CHECK(bench.compile().required == bench.config.required_linux);
  CHECK(bench.compile().warnings.empty());
  bench.host.platform = host_platform::macos;
  CHECK(bench.compile().required == bench.config.required_macos);
}

TEST_CASE("a rule that is given up is not required, is remembered and is said") {
  policy_bench bench;
  bench.spec.without = {"fs_name_deny", "net_proxy_only"};
  const auto p = bench.compile();
  CHECK(p.required == (bench.config.required_linux & ~(CCBOX_RULE_FS_NAME_DENY | CCBOX_RULE_NET_PROXY_ONLY)));
  CHECK(p.waived == (CCBOX_RULE_FS_NAME_DENY | CCBOX_RULE_NET_PROXY_ONLY));
  REQUIRE(p.warnings.size() == 2);
  CHECK(warns(p, "without fs_name_deny: given up that files with protected names cannot be created"));
  CHECK(warns(p, "without net_proxy_only"));
}

TEST_CASE("what no launch goes without cannot be given up") {
  policy_bench bench;
  for (const auto name : {"fs_binds_only", "pid_isolation", "no_such_rule"}) {
    bench.spec.without = {name};
    CHECK(bench.refusal().what.find(name) != std::string::npos);
  }
}

TEST_CASE("limits require that they are enforced") {
  policy_bench bench;
  CHECK_FALSE(bool(bench.compile().required & CCBOX_RULE_RESOURCE_LIMITS));
  bench.spec.limits.memory_bytes = 1 << 30;
  CHECK(bool(bench.compile().required & CCBOX_RULE_RESOURCE_LIMITS));
  bench.spec.without = {"resource_limits"};
  CHECK_FALSE(bool(bench.compile().required & CCBOX_RULE_RESOURCE_LIMITS));
}

TEST_CASE("a virtual machine that is asked for is one") {
  policy_bench bench;
  bench.spec.backend = "microvm";
  CHECK(bool(bench.compile().required & CCBOX_RULE_KERNEL_BOUNDARY));
  bench.spec.without = {"kernel_boundary"};
  CHECK(bench.refusal().what.find("contradict") != std::string::npos);
  bench.spec.backend.reset();
  CHECK_FALSE(bool(bench.compile().required & CCBOX_RULE_KERNEL_BOUNDARY));
}

TEST_CASE("backend none requires nothing, denies nothing and says so loudly") {
  policy_bench bench;
  bench.spec.backend = "none";
  bench.spec.limits.memory_bytes = 4 << 20;
  const auto p = bench.compile();
  CHECK(p.required == 0);
  CHECK(warns(p, "RUNNING UNCONFINED"));
  CHECK(
      std::all_of(p.rules.begin(), p.rules.end(), [](const rule& r) { return r.kind == rule_kind::mount; }));
  CHECK(check_path(p, "/etc/shadow").readable);
  CHECK(p.home == bench.home);
}

TEST_CASE("the network needs both the spec and the capability") {
  policy_bench bench;
  for (const bool enabled : {false, true})
    for (const bool capable : {false, true}) {
      bench.spec.network_enabled = enabled;
      bench.spec.capabilities.network = capable;
      CHECK(bench.compile().network_allowed == (enabled && capable));
    }
}

TEST_CASE("rules come in the promised order, and each says why") {
  policy_bench bench;
  bench.write("x.key");
  bench.spec.bind_mounts = {{bench.home, "", false}};
  bench.spec.protected_paths = {bench.work};
  const auto p = bench.compile();
  int before = 0;
  for (const auto& r : p.rules) {
    const int kind = static_cast<int>(r.kind);
    REQUIRE(kind >= before);
    before = kind;
    REQUIRE_FALSE(r.reason.empty());
    REQUIRE(r.reason.find('\n') == std::string::npos);
    REQUIRE(r.bit != 0);
    REQUIRE_FALSE(r.path.empty());
  }
}

TEST_CASE("no rule is listed twice") {
  policy_bench bench;
  bench.write(".env");
  bench.spec.bind_mounts = {{bench.home, "", false}, {bench.work, "", false}};
  bench.spec.protected_paths = {bench.work + "/.env", bench.work + "/./.env/"};
  const auto p = bench.compile();
  for (std::size_t i = 0; i < p.rules.size(); ++i)
    for (std::size_t j = i + 1; j < p.rules.size(); ++j) {
      const auto &a = p.rules[i], &b = p.rules[j];
      if (a.kind == b.kind && a.path == b.path && a.guest_path == b.guest_path) FAIL_CHECK(a.path);
    }
}

TEST_CASE("for a root caller what was looked for early is what is hidden in /etc") {
  policy_bench bench;
  bench.host.uid = 0;
  const auto finds = [&](std::vector<std::string> paths) {
    std::promise<result<std::vector<std::string>>> search;
    search.set_value(std::move(paths));
    bench.host.private_in_etc = search.get_future();
  };
  finds({"/etc/passwd"});  // which nothing else would hide
  const auto p = bench.compile();
  CHECK_FALSE(check_path(p, "/etc/passwd").readable);
  bench.config.max_existing_matches = 1;
  finds({"/etc/passwd", "/etc/hostname"});
  CHECK(bench.refusal().what.find("more than 1 entries below '/etc'") != std::string::npos);
}

TEST_CASE("the early search finds in /etc what the late one does") {
  const auto early = begin_private_in_etc();
  REQUIRE(early.valid());
  const auto late = find_private_entries("/etc", 100'000);
  REQUIRE(late.has_value());
  REQUIRE(early.get().has_value());
  CHECK(*early.get() == *late);
}

TEST_CASE("for a root caller what is not for everybody in /etc is a secret") {
  policy_bench bench;
  bench.host.uid = 0;
  const auto p = bench.compile();
  CHECK_FALSE(check_path(p, "/etc/shadow").readable);
  CHECK_FALSE(check_path(p, "/etc/gshadow-").readable);
  CHECK(check_path(p, "/etc/passwd").readable);
}

TEST_CASE("what a caller cannot read in the system view needs no rule") {
  policy_bench bench;
  CHECK(has_rule(bench.compile(), rule_kind::read_deny, "/etc/shadow") == (::geteuid() == 0));
}

TEST_CASE("on macOS globs are rules of their own, missing paths stay denies and programs are denied") {
  policy_bench bench;
  bench.host.platform = host_platform::macos;
  bench.spec.exec_grant_roots = {bench.work};
  bench.spec.protected_paths = {bench.work + "/*.lock"};
  const auto p = bench.compile();
  const auto globs = rules_for(p, rule_kind::read_deny, "/etc/ssh/ssh_host_*_key");
  REQUIRE(globs.size() == 1);
  CHECK(globs[0].glob);
  CHECK(has_rule(p, rule_kind::write_deny, bench.work + "/*.lock"));
  CHECK(has_rule(p, rule_kind::write_deny, bench.home + "/.kube"));
  CHECK(has_rule(p, rule_kind::read_deny, bench.home + "/.kube"));
  CHECK(has_rule(p, rule_kind::exec_deny, "/usr/bin/osascript"));
  CHECK(has_rule(p, rule_kind::exec_grant, bench.work));
  CHECK(has_name_rule(p, "*.key", bench.work));
  CHECK_FALSE(has_rule(p, rule_kind::mount, "/usr"));
  CHECK_FALSE(check_path(p, bench.home + "/.ssh/id").readable);
  CHECK(check_path(p, "/somewhere/else").readable);
  CHECK_FALSE(check_path(p, "/somewhere/else").writable);
  CHECK(denies_writing(p, bench.work + "/x.lock"));
}

TEST_CASE("a root to be executed from that does not exist is refused on every platform") {
  for (const auto platform : {host_platform::linux_like, host_platform::macos}) {
    policy_bench bench;
    bench.host.platform = platform;
    bench.spec.exec_grant_roots = {bench.work, bench.work + "/missing*"};
    const auto refused = bench.refusal();
    CHECK(refused.code == error_code::not_found);
    CHECK(refused.what == "execGrantRoots[1]: '" + bench.work + "/missing*' does not exist");
    CHECK_FALSE(refused.hint.empty());
  }
}

TEST_CASE("compiling changes nothing on the host") {
  policy_bench bench;
  bench.write("a/.env");
  const auto snapshot = [&] {
    std::vector<std::string> out;
    for (const auto& e : fs::recursive_directory_iterator(bench.dir.path()))
      out.push_back(e.path().string() + std::to_string(e.last_write_time().time_since_epoch().count()));
    std::sort(out.begin(), out.end());
    return out;
  };
  bench.spec.bind_mounts = {{bench.home, "", false}};
  const auto before = snapshot();
  bench.compile();
  CHECK(snapshot() == before);
}

TEST_CASE("what shows the kernel inside a mount is not written, and what shows processes is not read") {
  policy_bench bench;
  const std::string root = bench.work + "/root";
  for (const auto* name : {"/proc", "/sys/fs/cgroup"})
    fs::create_directories(root + name);
  bench.host.kernel_mounts = {{root + "/proc", "proc", true},
                              {root + "/sys", "sysfs", false},
                              {root + "/gone", "sysfs", false},
                              {bench.dir / "elsewhere", "proc", true}};
  const auto p = bench.compile();
  CHECK(has_rule(p, rule_kind::read_deny, root + "/proc"));
  CHECK(has_rule(p, rule_kind::write_deny, root + "/sys"));
  CHECK_FALSE(has_rule(p, rule_kind::write_deny, root + "/gone"));
  CHECK_FALSE(has_rule(p, rule_kind::read_deny, bench.dir / "elsewhere"));
  CHECK_FALSE(check_path(p, root + "/proc").readable);
  CHECK(denies_writing(p, root + "/proc"));
  CHECK(check_path(p, root + "/sys/fs/cgroup").readable);
  CHECK(denies_writing(p, root + "/sys/fs/cgroup"));
  CHECK(check_path(p, root).writable);
}

TEST_CASE("a mount inside what shows the kernel is read-only, or refused") {
  policy_bench bench;
  const std::string root = bench.work + "/root";
  fs::create_directories(root + "/a/b");
  bench.spec.bind_mounts.clear();
  bench.mount(root + "/a/b");
  bench.host.kernel_mounts = {{root + "/a", "cgroup2", false}};
  CHECK(warns(bench.compile(), "is mounted read-only: mandatory deny: the kernel's own files (cgroup2)"));
  bench.host.kernel_mounts = {{root + "/a", "proc", true}};
  CHECK(bench.refusal().what.find("cannot be shown: mandatory deny: the kernel's own files (proc)") !=
        std::string::npos);
}

TEST_CASE("the parts of this program are not written where a mount shows them") {
  policy_bench bench;
  const auto inside = bench.write("build/bin/program"), plugin = bench.write("build/plugins/p.so");
  const auto outside = bench.dir.write("elsewhere/program", "x");
  fs::create_symlink(plugin, bench.work + "/link.so");
  bench.host.own_files = {inside, bench.work + "/link.so", outside, bench.work + "/missing"};
  const auto p = bench.compile();
  CHECK(denies_writing(p, inside));
  CHECK(has_rule(p, rule_kind::write_deny, inside));
  CHECK(has_rule(p, rule_kind::write_deny, plugin));
  CHECK_FALSE(has_rule(p, rule_kind::write_deny, outside));
  CHECK_FALSE(check_path(p, bench.work + "/missing").creatable);
  CHECK(check_path(p, bench.work + "/build/bin").writable);
}
