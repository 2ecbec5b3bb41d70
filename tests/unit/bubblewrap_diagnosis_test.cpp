#include "plugins/bubblewrap/diagnosis.hpp"

#include <doctest/doctest.h>

using namespace ccbox::bubblewrap;

namespace {

host_signs debian() {
  host_signs signs;
  signs.kernel_release = "6.1.0-18-amd64";
  signs.max_user_namespaces = 63000;
  signs.unprivileged_userns_clone = 1;
  return signs;
}
host_signs ubuntu() {
  auto signs = debian();
  signs.kernel_release = "6.8.0-31-generic";
  signs.apparmor_restrict_unprivileged_userns = 1;
  return signs;
}
host_signs docker() {
  auto signs = debian();
  signs.container = true;
  return signs;
}
host_signs wsl(const char* release) {
  auto signs = debian();
  signs.kernel_release = release;
  signs.unprivileged_userns_clone.reset();
  return signs;
}

diagnosis after(const char* stderr_text, const host_signs& signs) {
  trial_outcome outcome;
  outcome.code = 1;
  outcome.stderr_text = stderr_text;
  auto found = diagnose_trial(outcome, signs);
  CHECK_MESSAGE(!found.hint.empty(), stderr_text);
  CHECK_MESSAGE(found.hint.find('\n') == std::string::npos, found.hint);
  return found;
}
bool names(const diagnosis& d, const char* remedy) {
  INFO(d.hint);
  return d.hint.find(remedy) != std::string::npos;
}

constexpr auto no_permissions =
    "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged "
    "user "
    "namespaces. See <https://deb.li/bubblewrap> or <file:///usr/share/doc/bubblewrap/README.Debian.gz>.\n";

}  // namespace

TEST_CASE("nothing is wrong with an ordinary host before it was tried") {
  CHECK_FALSE(diagnose_signs(debian()));
  CHECK_FALSE(diagnose_signs(docker()));
  CHECK_FALSE(diagnose_signs(wsl("5.15.90.1-microsoft-standard-WSL2")));
}

TEST_CASE("user namespaces that a switch turns off are named with the switch") {
  auto off = debian();
  off.max_user_namespaces = 0;
  REQUIRE(diagnose_signs(off));
  CHECK(diagnose_signs(off)->cause == "no-user-namespaces");
  CHECK(names(*diagnose_signs(off), "sysctl user.max_user_namespaces="));
  CHECK(names(
      after("bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded "
            "(ENOSPC)\n",
            off),
      "sysctl user.max_user_namespaces="));

  auto unprivileged_off = debian();
  unprivileged_off.unprivileged_userns_clone = 0;
  REQUIRE(diagnose_signs(unprivileged_off));
  CHECK(names(*diagnose_signs(unprivileged_off), "kernel.unprivileged_userns_clone=1"));
  CHECK(names(after(no_permissions, unprivileged_off), "kernel.unprivileged_userns_clone=1"));
  unprivileged_off.root = true;
  CHECK_FALSE(diagnose_signs(unprivileged_off));
}

TEST_CASE("a limit of processes that is reached is named as such, in a container too") {
  for (const char* line : {"bwrap: Creating new namespace failed: Resource temporarily unavailable\n",
                           "ccbox-broker: start the launcher: Resource temporarily unavailable\n",
                           "ccbox-broker: start a thread: Resource temporarily unavailable\n"}) {
    for (const auto& host : {debian(), docker(), ubuntu()}) {
      const auto found = after(line, host);
      CHECK_MESSAGE(found.cause == "too-many-processes", line);
      CHECK(names(found, "ulimit -u"));
    }
  }
}

TEST_CASE("an enclosure of ccbox around is the reason, whatever else there is to see") {
  auto enclosed = docker();
  enclosed.enclosure = true;
  REQUIRE(diagnose_signs(enclosed));
  CHECK(diagnose_signs(enclosed)->cause == "inside-enclosure");
  CHECK(after(no_permissions, enclosed).cause == "inside-enclosure");
}

TEST_CASE("a kernel without user namespaces is told from one that turns them off") {
  const auto found = after(
      "bwrap: Creating new namespace failed, likely because the kernel does not support user namespaces.  "
      "bwrap must be "
      "installed setuid on such systems.\n",
      debian());
  CHECK(found.cause == "no-user-namespaces");
  CHECK(names(found, "CONFIG_USER_NS"));
}

TEST_CASE("Ubuntu's AppArmor restriction is named in each of its faces") {
  for (const char* line : {"bwrap: setting up uid map: Permission denied\n",
                           "bwrap: error writing to setgroups: Permission denied\n",
                           "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted\n", no_permissions,
                           "bwrap: Failed to make / slave: Permission denied\n"}) {
    const auto found = after(line, ubuntu());
    CHECK_MESSAGE(found.cause == "apparmor-restriction", line);
    CHECK(names(found, "kernel.apparmor_restrict_unprivileged_userns=0"));
    CHECK(names(found, "/etc/apparmor.d/bwrap"));
  }
  REQUIRE(diagnose_signs(ubuntu()));
  CHECK(diagnose_signs(ubuntu())->cause == "apparmor-restriction");
  auto with_profile = ubuntu();
  with_profile.apparmor_profile = true;
  CHECK_FALSE(diagnose_signs(with_profile));
  auto root = ubuntu();
  root.root = true;
  CHECK_FALSE(diagnose_signs(root));
}

TEST_CASE("a container is named with what it refuses") {
  const auto refused = [](const char* line, const char* what) {
    const auto found = after(line, docker());
    CHECK_MESSAGE(found.cause == "inside-container", line);
    CHECK(names(found, what));
    CHECK(names(found, "--security-opt"));
  };
  refused(no_permissions, "new namespaces");
  refused("bwrap: Creating new namespace failed: Operation not permitted\n", "new namespaces");
  refused("user namespace: Operation not permitted\n", "new namespaces");
  refused("bwrap: Can't mount proc on /newroot/proc: Operation not permitted\n", "a fresh /proc");
  refused("bwrap: setting up uid map: Operation not permitted\n", "the id map");
  refused("writing uid_map: Operation not permitted\n", "the id map");
  refused("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted\n", "a loopback device");
  refused("bwrap: Failed to make / slave: Permission denied\n", "mounts");
  refused("bwrap: pivot_root: Operation not permitted\n", "mounts");
}

TEST_CASE("the same lines outside of a container have causes of their own") {
  CHECK(after("bwrap: Can't mount proc on /newroot/proc: Operation not permitted\n", debian()).cause ==
        "proc-mount-refused");
  CHECK(after("bwrap: setting up uid map: Operation not permitted\n", debian()).cause == "id-map-refused");
  CHECK(after("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted\n", debian()).cause ==
        "no-network-namespace");
}

TEST_CASE("WSL 1 is refused before anything is tried, WSL 2 is told to update") {
  const auto first = wsl("4.4.0-19041-Microsoft");
  REQUIRE(diagnose_signs(first));
  CHECK(diagnose_signs(first)->cause == "wsl1");
  CHECK(names(after("anything at all\n", first), "wsl --set-version"));
  const auto second = wsl("5.15.90.1-microsoft-standard-WSL2");
  CHECK(names(after(no_permissions, second), "wsl --update"));
}

TEST_CASE("a bwrap without binds by descriptor is too old") {
  const auto found = after("bwrap: Unknown option --ro-bind-fd\n", debian());
  CHECK(found.cause == "bwrap-too-old");
  CHECK(names(found, "--ro-bind-fd"));
}

TEST_CASE("a caller with ambient capabilities, and a host that is too slow, have hints of their own") {
  CHECK(after("bwrap: Unexpected capabilities but not setuid, old file caps config?\n", debian()).cause ==
        "caller-has-capabilities");
  trial_outcome slow;
  slow.timed_out = true;
  CHECK(diagnose_trial(slow, debian()).cause == "timed-out");
}

TEST_CASE("what is unknown is shown, with nothing in it that a terminal could act on") {
  const auto found = after("some warning\nbwrap: something \x1b[31mnew\n\n", debian());
  CHECK(found.cause == "trial-failed");
  CHECK(names(found, "something \\x1b[31mnew"));
  CHECK(after("", debian()).cause == "trial-failed");
}
