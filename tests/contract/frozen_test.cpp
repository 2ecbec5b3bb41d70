// Plugins of other versions: each works fully with this host, or is refused. None runs with less isolation
// than asked.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <regex>
#include <sstream>
#include <string>

#include "backend.hpp"
#include "contract/contract_run.hpp"
#include "plugin_loader.hpp"
#include "support/result_printing.hpp"
#include "support/temporary_directory.hpp"

using namespace ccbox;

namespace {

std::string built(const std::string& name) {
  return CCBOX_TEST_BINARY_DIR "/version_plugins/" + name + ".so";
}

std::string code_of(const std::string& header) {
  std::ifstream in(CCBOX_TEST_SOURCE_DIR + ("/" + header));
  REQUIRE_MESSAGE(in.good(), header);
  std::stringstream out;
  out << in.rdbuf();
  const auto code = std::regex_replace(out.str(), std::regex(R"(/\*[^*]*\*+([^/*][^*]*\*+)*/)"), " ");
  return std::regex_replace(code, std::regex(R"(\s+)"), " ");
}

const ccbox_host& host() {
  static const ccbox_host table = {
      sizeof table,
      CCBOX_ABI_MINOR,
      nullptr,
      [](void*, ccbox_level, ccbox_str) {},
      [](void*, ccbox_str, ccbox_str, ccbox_str) -> ccbox_status { return CCBOX_OK; },
      [](void*, ccbox_str) -> const void* { return nullptr; }};
  return table;
}

// A plugin loaded as the registry does it, from a directory that the loader trusts.
struct loaded {
  test::temporary_directory directory;
  result<std::unique_ptr<loaded_plugin>> plugin;

  explicit loaded(const std::string& name, const test::plugin_options& options = {})
      : plugin(load(name, options)) {}

  backend as_backend() const {
    REQUIRE(plugin);
    const auto& p = **plugin;
    return {p.name(), p.version(), p.instance(),
            static_cast<const ccbox_backend*>(p.get_extension(CCBOX_BACKEND_EXTENSION))};
  }

 private:
  result<std::unique_ptr<loaded_plugin>> load(const std::string& name, const test::plugin_options& options) {
    manifest_entry entry;
    entry.path = directory / (name + ".so");
    entry.options = options;
    std::filesystem::copy_file(built(name), entry.path);
    std::filesystem::permissions(entry.path, std::filesystem::perms::owner_read);
    return load_plugin(entry, host());
  }
};

rule mount_rule(const std::string& path, bool read_only) {
  rule r;
  r.kind = rule_kind::mount;
  r.bit = CCBOX_RULE_FS_BINDS_ONLY;
  r.path = r.guest_path = path;
  r.read_only = read_only;
  r.type = path_type::directory;
  r.reason = "mount of the spec";
  return r;
}

policy two_mounts() {
  policy p;
  p.rules = {mount_rule("/usr", true), mount_rule("/work", false)};
  p.required = CCBOX_RULE_FS_BINDS_ONLY | CCBOX_RULE_PID_ISOLATION;
  p.workdir = "/work";
  p.home = "/run/ccbox/home";
  p.tmpdir = "/tmp";
  return p;
}

constexpr rule_bits bit_of_a_later_version = rule_bits{1} << 20;

}  // namespace

TEST_CASE("until there is a 1.1, the frozen header is the header") {
  if (CCBOX_ABI_MINOR == 0)
    CHECK(code_of("kernel/abi/ccbox/plugin.h") == code_of("tests/contract/frozen/ccbox_plugin_1_0.h"));
  CHECK(code_of("tests/contract/frozen/ccbox_plugin_1_0.h").find("#define CCBOX_ABI_MINOR 0") !=
        std::string::npos);
}

TEST_CASE("the frozen 1.0 plugin keeps the contract of today") {
  CHECK(test::broken_promises(built("frozen_1_0")) == "");
}

TEST_CASE("the frozen 1.0 plugin loads and its plan arrives whole") {
  const loaded frozen("frozen_1_0", {{"mark", "here"}});
  REQUIRE(frozen.plugin);
  CHECK((*frozen.plugin)->name() == "frozen");
  CHECK((*frozen.plugin)->abi_minor() == 0);
  const auto probed = frozen.as_backend().probe(CCBOX_PROBE_FULL);
  REQUIRE(probed);
  CHECK(probed->available);
  CHECK(probed->enforced == (CCBOX_RULE_FS_BINDS_ONLY | CCBOX_RULE_NET_PROXY_ONLY | CCBOX_RULE_PID_ISOLATION |
                             CCBOX_RULE_RESOURCE_LIMITS));
  const auto made = frozen.as_backend().make_plan(two_mounts(), "/lib/ccbox-init");
  REQUIRE(made);
  CHECK(made->argv == std::vector<std::string>{"/usr/bin/frozen", "here", "--ro", "5", "/usr", "--rw", "6",
                                               "/work", "--chdir", "/work", "7", "/proc/self/fd/4",
                                               "--channel", "3"});
  CHECK(made->env == std::vector<std::pair<std::string, std::string>>{{"FROZEN", "1.0"}});
  REQUIRE(made->paths.size() == 2);
  CHECK(made->paths[1].host_path == "/work");
  REQUIRE(made->files.size() == 1);
  CHECK(made->files[0].bytes == "sealed");
  CHECK(made->layers == std::vector<std::string>{"mount: bind", "mount: bind"});
  CHECK(made->enforced == probed->enforced);
}

TEST_CASE("what a later version requires, the frozen 1.0 plugin is refused for") {
  const loaded frozen("frozen_1_0");
  auto asked = two_mounts();
  asked.required |= bit_of_a_later_version;
  const auto refused = frozen.as_backend().make_plan(asked, "/lib/ccbox-init");
  REQUIRE(refused.has_error());
  CHECK(refused.error().code == error_code::unenforceable);
  CHECK(refused.error().what.find("bit 20") != std::string::npos);
}

TEST_CASE("a rule of a later version takes its bit out of the frozen 1.0 plugin's claims") {
  const loaded frozen("frozen_1_0");
  auto asked = two_mounts();
  auto later = mount_rule("/later", false);
  later.kind = static_cast<rule_kind>(900);
  asked.rules.push_back(later);
  const auto refused = frozen.as_backend().make_plan(asked, "/lib/ccbox-init");
  REQUIRE(refused.has_error());
  CHECK(refused.error().code == error_code::unenforceable);
}

TEST_CASE("a plugin from the future keeps the contract of today and plans") {
  CHECK(test::broken_promises(built("future_1_9")) == "");
  const loaded future("future_1_9");
  REQUIRE(future.plugin);
  CHECK((*future.plugin)->abi_minor() == 9);
  policy asked;
  asked.required = CCBOX_RULE_PID_ISOLATION;
  const auto made = future.as_backend().make_plan(asked, "/lib/ccbox-init");
  REQUIRE(made);
  CHECK(made->enforced == CCBOX_RULE_PID_ISOLATION);
}

TEST_CASE("a plugin from the future whose plan needs what this host does not know is refused") {
  // The flag may be what its isolation rests on: ignoring it could start something weaker.
  const loaded future("future_1_9", {{"manners", "none"}});
  policy asked;
  asked.required = CCBOX_RULE_PID_ISOLATION;
  const auto refused = future.as_backend().make_plan(asked, "/lib/ccbox-init");
  REQUIRE(refused.has_error());
  CHECK(refused.error().code == error_code::unenforceable);
  CHECK(refused.error().what.find("flag") != std::string::npos);
  CHECK(test::broken_promises(built("future_1_9"), {{"manners", "none"}}) != "");
}

TEST_CASE("the rule bits that a plugin from the future claims beyond this version count for nothing") {
  const loaded future("future_1_9", {{"manners", "none"}});
  const auto probed = future.as_backend().probe(CCBOX_PROBE_FULL);
  REQUIRE(probed);
  CHECK(probed->enforced == CCBOX_RULE_PID_ISOLATION);
}

TEST_CASE("a plugin one member behind in every struct works with what it knows") {
  const loaded behind("behind");
  REQUIRE(behind.plugin);
  const auto probed = behind.as_backend().probe(CCBOX_PROBE_QUICK);
  REQUIRE(probed);
  CHECK(probed->available);
  CHECK(probed->cause == "");
  const auto made = behind.as_backend().make_plan(two_mounts(), "/lib/ccbox-init");
  REQUIRE(made);
  CHECK(made->argv ==
        std::vector<std::string>{"/usr/bin/behind", "/usr", "/work", "/proc/self/fd/4", "--channel", "3"});
  CHECK(made->enforced == (CCBOX_RULE_FS_BINDS_ONLY | CCBOX_RULE_PID_ISOLATION));
}

TEST_CASE("a plugin one member behind is refused for what it does not know of") {
  const loaded behind("behind");
  auto asked = two_mounts();
  asked.required |= CCBOX_RULE_NET_PROXY_ONLY;
  const auto refused = behind.as_backend().make_plan(asked, "/lib/ccbox-init");
  REQUIRE(refused.has_error());
  CHECK(refused.error().code == error_code::unenforceable);
  CHECK(refused.error().what.find("net_proxy_only") != std::string::npos);
}

TEST_CASE("a plugin whose table lacks plan is refused before it is asked") {
  const loaded behind("behind_table");
  REQUIRE(behind.plugin);
  CHECK(behind.as_backend().make_plan(two_mounts(), "/lib/ccbox-init").has_error());
  CHECK(behind.as_backend().probe(CCBOX_PROBE_QUICK).has_error());
}

TEST_CASE("a plugin whose descriptor lacks a function is not loaded") {
  const loaded behind("behind_descriptor");
  REQUIRE(behind.plugin.has_error());
  CHECK(behind.plugin.error().what.find("descriptor smaller than version 1.0") != std::string::npos);
}

TEST_CASE("the examples of third parties are refused for the standard policy and say which rule is missing") {
  for (const std::string name : {"example_nice", "example_prlimit"}) {
    CAPTURE(name);
    test::temporary_directory directory;
    manifest_entry entry;
    entry.path = directory / "example.so";
    std::filesystem::copy_file(CCBOX_TEST_BINARY_DIR "/contract_plugins/" + name + ".so", entry.path);
    std::filesystem::permissions(entry.path, std::filesystem::perms::owner_read);
    const auto plugin = load_plugin(entry, host());
    REQUIRE(plugin);
    const backend example(
        (*plugin)->name(), (*plugin)->version(), (*plugin)->instance(),
        static_cast<const ccbox_backend*>((*plugin)->get_extension(CCBOX_BACKEND_EXTENSION)));
    auto standard = two_mounts();
    standard.required |= CCBOX_RULE_FS_READ_DENY | CCBOX_RULE_FS_WRITE_DENY | CCBOX_RULE_FS_NAME_DENY |
                         CCBOX_RULE_NET_PROXY_ONLY | CCBOX_RULE_RESOURCE_LIMITS;
    const auto refused = example.make_plan(standard, "/lib/ccbox-init");
    REQUIRE(refused.has_error());
    CHECK(refused.error().code == error_code::unenforceable);
    for (const std::string bit :
         {"fs_binds_only", "fs_read_deny", "fs_name_deny", "net_proxy_only", "pid_isolation"})
      CHECK(refused.error().what.find(bit) != std::string::npos);
    CHECK(refused.error().what.find("resource_limits") == std::string::npos);

    policy nothing;
    const auto made = example.make_plan(nothing, "/lib/ccbox-init");
    REQUIRE(made);
    CHECK(made->unconfined);
  }
}
