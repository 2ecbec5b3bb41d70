#include "support/policy_bench.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace ccbox::test {

const policy_config& shipped_policy() {
  static const policy_config config = [] {
    auto loaded = load_policy_config(std::string(CCBOX_TEST_SOURCE_DIR) + "/config/policy.yaml");
    REQUIRE_MESSAGE(loaded.has_value(), loaded.error().what);
    return *loaded;
  }();
  return config;
}

policy_bench::policy_bench() {
  home = dir / "home";
  work = home + "/work";
  std::filesystem::create_directories(work);
  dir.write("home/.ssh/id", "secret");
  dir.write("home/.aws/credentials", "secret");
  host.uid = ::geteuid() == 0 ? 1000 : ::geteuid();
  host.gid = ::getegid();
  host.home = home;
  host.current_directory = work;
  spec.session_id = "s1";
  spec.workspace_id = "w1";
  spec.bind_mounts.push_back({work, "", false});
}

std::string policy_bench::write(std::string_view below_work, std::string_view bytes) const {
  return dir.write("home/work/" + std::string(below_work), bytes);
}

void policy_bench::mount(const std::string& host_path, bool read_only, const std::string& guest_path) {
  spec.bind_mounts.push_back({host_path, guest_path, read_only});
}

policy policy_bench::compile() const {
  auto p = try_compile();
  REQUIRE_MESSAGE(p.has_value(), p.error().what);
  return *p;
}

error policy_bench::refusal() const {
  const auto p = try_compile();
  REQUIRE_FALSE(p.has_value());
  CHECK_FALSE(p.error().what.empty());
  return p.error();
}

std::vector<rule> rules_for(const policy& p, rule_kind kind, std::string_view path) {
  std::vector<rule> out;
  for (const auto& r : p.rules)
    if (r.kind == kind && r.path == path) out.push_back(r);
  return out;
}

bool has_rule(const policy& p, rule_kind kind, std::string_view path) {
  return !rules_for(p, kind, path).empty();
}

bool has_name_rule(const policy& p, std::string_view pattern, std::string_view root) {
  for (const auto& r : rules_for(p, rule_kind::name_deny, pattern))
    if (r.glob && r.guest_path == root) return true;
  return false;
}

bool warns(const policy& p, std::string_view text) {
  return std::any_of(p.warnings.begin(), p.warnings.end(),
                     [&](const std::string& w) { return w.find(text) != std::string::npos; });
}

bool denies_writing(const policy& p, const std::string& path) {
  const auto answer = check_path(p, path);
  return !answer.writable && !answer.creatable;
}

}  // namespace ccbox::test
