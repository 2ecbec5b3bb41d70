// `ccbox probe` where a part of what name rules need is missing: the system call that the part is asked for
// with is answered as a kernel without it, or a filter around, would answer it.
#include <sys/stat.h>

#include <boost/json.hpp>
#include <filesystem>

#include "cli_support.hpp"
#include "support/planned.hpp"

using namespace ccbox::test;
namespace json = boost::json;

namespace {

const std::string attempt_program = CCBOX_TEST_BINARY_DIR "/bin/attempt";

struct probed {
  bool claims_names = false, claims_mounts = false;
  std::string cause, hint;
};

probed probe_under(const arguments& around) {
  const auto result =
      run(arguments{attempt_program} + around + arguments{"--", ccbox_program(), "probe", "--json"});
  CHECK_MESSAGE(result.code == 0, result.err);
  probed found;
  const auto document = json::parse(result.out);
  for (const auto& backend : document.at("backends").as_array()) {
    if (backend.at("name").as_string() != "bubblewrap") continue;
    const auto text = [&](const char* key) {
      const auto* value = backend.as_object().if_contains(key);
      return value ? std::string(value->as_string()) : std::string();
    };
    found.cause = text("cause");
    found.hint = text("hint");
    for (const auto& bit : backend.at("enforced").as_array()) {
      found.claims_names = found.claims_names || bit.as_string() == "fs_name_deny";
      found.claims_mounts = found.claims_mounts || bit.as_string() == "fs_binds_only";
    }
  }
  return found;
}

// On this host with these answers the rest works, and names do not.
void lacks(const arguments& around, const std::string& cause, const std::string& remedy) {
  const auto found = probe_under(around);
  CAPTURE(around.at(1));
  CHECK(found.claims_mounts);
  CHECK_FALSE(found.claims_names);
  CHECK(found.cause == cause);
  CHECK_MESSAGE(contains(found.hint, remedy), found.hint);
}

#if defined(__aarch64__)
constexpr auto number_of_seccomp = "277", number_of_ioctl = "29", number_of_vm_readv = "270",
               number_of_setns = "268";
#else
constexpr auto number_of_seccomp = "317", number_of_ioctl = "16", number_of_vm_readv = "310",
               number_of_setns = "308";
#endif
constexpr auto landlock_create_ruleset = "444", landlock_add_rule = "445", landlock_restrict_self = "446";

arguments refusing(const std::string& what) {
  return {"refusing", what};
}
std::string errno_of(const char* call, int error) {
  return std::string(call) + ":" + std::to_string(error);
}

}  // namespace

TEST_CASE("with nothing in the way names are claimed, and nothing is left of the trial") {
  const auto scratch = [] {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/tmp"))
      count += entry.path().filename().string().starts_with("ccbox-trial.");
    return count;
  };
  const auto before = scratch();
  const auto found = probe_under(refusing(errno_of("4095", EPERM)));
  CHECK(found.claims_names);
  CHECK(found.cause == "");
  CHECK(found.hint == "");
  CHECK(scratch() == before);
}

TEST_CASE("Landlock that is missing, switched off or filtered away is named") {
  lacks(refusing(errno_of(landlock_create_ruleset, ENOSYS)), "no-landlock", "CONFIG_SECURITY_LANDLOCK");
  lacks(refusing(errno_of(landlock_create_ruleset, EOPNOTSUPP)), "landlock-off", "lsm=");
  lacks(refusing(errno_of(landlock_create_ruleset, EPERM)), "filter-around", "landlock_create_ruleset");
  lacks(refusing(errno_of(landlock_add_rule, EPERM)), "filter-around", "landlock_add_rule");
  lacks(refusing(errno_of(landlock_restrict_self, E2BIG)), "landlock-full", "16 Landlock domains");
}

TEST_CASE("an older Landlock is named with its version and what the needed one is for") {
  lacks({"answering", landlock_create_ruleset, "2"}, "landlock-too-old",
        "version 2, and name rules need version 3 (Linux 6.2)");
  lacks({"answering", landlock_create_ruleset, "1"}, "landlock-too-old",
        "2 (Linux 5.19), which lets files be moved");
}

TEST_CASE("listeners that an older kernel does not have, or not well enough, are named") {
  const std::string of(number_of_seccomp);
  lacks({"refusing", of + "/0&0xffff=2:" + std::to_string(EOPNOTSUPP),
         of + "/1&0x8=0x8:" + std::to_string(EINVAL)},
        "no-listener", "Linux 5.0");
  lacks(refusing(of + "/1&0x20=0x20:" + std::to_string(EINVAL)), "listener-too-old", "Linux 5.19");
  lacks(refusing(of + "/1&0x8=0x8:" + std::to_string(EPERM)), "filter-around", "seccomp");
  // SECCOMP_IOCTL_NOTIF_ADDFD
  lacks(refusing(std::string(number_of_ioctl) + "/1&0xffff=0x2103:" + std::to_string(EINVAL)),
        "listener-too-old", "Linux 5.9");
}

TEST_CASE("a listener that is around already is named, at the probe and at a launch") {
  lacks({"answering", "-1", "0"}, "listener-taken", "run ccbox outside of it");
  const temporary_directory work;
  const auto refused =
      run({attempt_program, "answering", "-1", "0", "--", ccbox_program(), "run", "--", "true"}, in(work));
  CHECK(refused.code == 125);
  CHECK(contains(refused.err, "a system-call listener is installed already"));
  CHECK(contains(refused.err, "hint: something around ccbox has a system-call listener"));
}

TEST_CASE("a broker that may not read its callers, or not go where they are, is named") {
  lacks(refusing(errno_of(number_of_vm_readv, EPERM)), "memory-unreadable", "memory");
  lacks(refusing(errno_of(number_of_setns, EPERM)), "setns-refused", "namespaces");
}

TEST_CASE("a broker that is missing or cannot be executed is named, and so is who does not say where it is") {
  const temporary_directory copy;
  const built_plugin backend("bubblewrap");
  const auto init = copy / "ccbox-init";
  std::filesystem::copy_file(CCBOX_TEST_BINARY_DIR "/bin/ccbox-init", init);
  const auto lacking = [&](const std::string& init_path) {
    const auto found = backend.probe(CCBOX_PROBE_FULL, init_path);
    CHECK(found.available);
    CHECK((found.enforced & CCBOX_RULE_FS_NAME_DENY) == 0);
    CHECK((found.enforced & CCBOX_RULE_FS_BINDS_ONLY) != 0);
    return found;
  };
  CHECK(lacking(init).cause == "no-broker");
  CHECK(contains(lacking(init).hint, "install ccbox again"));
  const auto broker = copy.write("ccbox-broker", "#!/bin/false\n");
  CHECK(lacking(init).cause == "no-broker");
  CHECK(contains(lacking(init).hint, "chmod 755"));
  REQUIRE(::chmod(broker.c_str(), 0755) == 0);
  CHECK(lacking(init).cause == "broker-failed");
  std::filesystem::remove(broker);
  std::filesystem::copy_file(CCBOX_TEST_BINARY_DIR "/bin/ccbox-broker", broker);
  CHECK(backend.probe(CCBOX_PROBE_FULL, init).cause == "");
  CHECK(lacking("").cause == "no-init");
}

TEST_CASE("a launch that needs names says what is missing, and doctor what to do") {
  const temporary_directory work;
  const arguments around{attempt_program, "refusing", errno_of(landlock_create_ruleset, ENOSYS), "--",
                         ccbox_program()};
  const auto refused = run(around + arguments{"run", "--", "true"}, in(work));
  CHECK(refused.code == 125);
  CHECK(contains(refused.err, "cannot enforce fs_name_deny"));
  CHECK(contains(refused.err, "hint: this kernel has no Landlock"));
  CHECK(contains(refused.err, "--without fs_name_deny"));
  CHECK(run(around + arguments{"run", "-q", "--without", "fs_name_deny", "--", "true"}, in(work)).code == 0);
  const auto doctor = run(around + arguments{"doctor"}, in(work));
  CHECK(doctor.code == 1);
  CHECK(contains(doctor.out, "enforces less here than it can: no-landlock"));
  CHECK(contains(doctor.out, "-> this kernel has no Landlock"));
}
