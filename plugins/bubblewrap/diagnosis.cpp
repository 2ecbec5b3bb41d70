#include "diagnosis.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <charconv>

#include "paths.hpp"
#include "small_file.hpp"

namespace ccbox::bubblewrap {

namespace {

std::optional<long> read_number(const char* path) {
  const auto text = read_small_file(path);
  long value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() ? std::optional(value) : std::nullopt;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

// "4.4.0-19041-Microsoft" is the first WSL, a translator of system calls without namespaces; the second runs
// a real kernel, "5.15.90.1-microsoft-standard-WSL2".
bool is_wsl1(const host_signs& signs) {
  return contains(signs.kernel_release, "-Microsoft");
}
bool is_wsl2(const host_signs& signs) {
  return contains(signs.kernel_release, "microsoft");
}

diagnosis enclosed() {
  return {"inside-enclosure",
          "this is inside an enclosure of ccbox already, where new namespaces are refused: run ccbox outside "
          "of it"};
}

diagnosis wsl1() {
  return {"wsl1", "WSL 1 has no namespaces: convert the distribution with `wsl --set-version <name> 2`"};
}

diagnosis no_user_namespaces(const host_signs& signs) {
  if (signs.max_user_namespaces == 0)
    return {"no-user-namespaces",
            "user namespaces are off: sudo sysctl user.max_user_namespaces=15000 (keep it in /etc/sysctl.d)"};
  if (signs.unprivileged_userns_clone == 0 && !signs.root)
    return {
        "no-user-namespaces",
        "unprivileged user namespaces are off: sudo sysctl kernel.unprivileged_userns_clone=1 (keep it in "
        "/etc/sysctl.d)"};
  if (is_wsl2(signs))
    return {"no-user-namespaces", "this WSL 2 kernel refuses user namespaces: update it with `wsl --update`"};
  return {"no-user-namespaces",
          "this kernel refuses user namespaces: boot one built with CONFIG_USER_NS, or allow them in its "
          "security module"};
}

diagnosis apparmor() {
  return {"apparmor-restriction",
          "AppArmor keeps user namespaces from bwrap: install a profile that grants `userns` to it as "
          "/etc/apparmor.d/bwrap and load it with `sudo apparmor_parser -r`, or sudo sysctl "
          "kernel.apparmor_restrict_unprivileged_userns=0"};
}

diagnosis container(const char* what) {
  return {"inside-container", std::string("the container that this runs in refuses ") + what +
                                  ": start it with `--security-opt seccomp=unconfined --security-opt "
                                  "apparmor=unconfined --security-opt "
                                  "systempaths=unconfined` (for root inside also `--cap-add SYS_ADMIN "
                                  "--cap-add NET_ADMIN`), or run ccbox on "
                                  "the host"};
}

bool apparmor_restricts(const host_signs& signs) {
  return !signs.root && signs.apparmor_restrict_unprivileged_userns.value_or(0) != 0;
}

std::string last_line(std::string_view text) {
  while (!text.empty() && text.back() == '\n')
    text.remove_suffix(1);
  const auto newline = text.rfind('\n');
  if (newline != text.npos) text.remove_prefix(newline + 1);
  return shown(text.substr(0, 300));
}

}  // namespace

host_signs read_host_signs() {
  host_signs signs;
  signs.root = ::geteuid() == 0;
  signs.enclosure = read_small_file("/proc/1/comm") == "ccbox-init\n";
  signs.container = ::access("/.dockerenv", F_OK) == 0 || ::access("/run/.containerenv", F_OK) == 0;
  utsname names{};
  if (::uname(&names) == 0) signs.kernel_release = names.release;
  signs.max_user_namespaces = read_number("/proc/sys/user/max_user_namespaces");
  signs.unprivileged_userns_clone = read_number("/proc/sys/kernel/unprivileged_userns_clone");
  signs.apparmor_restrict_unprivileged_userns =
      read_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
  signs.ptrace_scope = read_number("/proc/sys/kernel/yama/ptrace_scope");
  for (const char* profile : {"/etc/apparmor.d/bwrap", "/etc/apparmor.d/bwrap-userns-restrict"})
    signs.apparmor_profile |= ::access(profile, F_OK) == 0;
  return signs;
}

std::optional<diagnosis> diagnose_signs(const host_signs& signs) {
  if (signs.enclosure) return enclosed();
  if (is_wsl1(signs)) return wsl1();
  if (signs.max_user_namespaces == 0 || (signs.unprivileged_userns_clone == 0 && !signs.root))
    return no_user_namespaces(signs);
  if (apparmor_restricts(signs) && !signs.apparmor_profile) return apparmor();
  return std::nullopt;
}

diagnosis diagnose_trial(const trial_outcome& outcome, const host_signs& signs) {
  const std::string_view text = outcome.stderr_text;
  const bool refused = contains(text, "Operation not permitted") || contains(text, "Permission denied");
  if (signs.enclosure) return enclosed();
  if (is_wsl1(signs)) return wsl1();
  if (outcome.timed_out)
    return {"timed-out",
            "a trivial enclosure did not start in time: look at the load of this host, and run ccbox probe "
            "again"};
  if (contains(text, "Resource temporarily unavailable"))
    return {"too-many-processes",
            "no further process or thread may be made: raise `ulimit -u`, or pids.max of the cgroup that "
            "this runs "
            "in, or end some processes of this user"};
  if (contains(text, "Unknown option"))
    return {"bwrap-too-old", "this bwrap lacks an option (" + last_line(text) +
                                 "): install bubblewrap 0.10 or later, or the 0.8.0-2+deb12u1 of Debian 12"};
  if (contains(text, "Unexpected capabilities but not setuid"))
    return {"caller-has-capabilities",
            "bwrap does not run for a user who holds capabilities: start ccbox without them (setpriv "
            "--ambient-caps -all --inh-caps -all)"};
  if (contains(text, "max_*_namespaces exceeded") || contains(text, "does not support user namespaces"))
    return no_user_namespaces(signs);
  if (contains(text, "Creating new namespace failed") ||
      contains(text, "No permissions to create new namespace") ||
      contains(text, "user namespace: Operation not permitted")) {
    if (const auto certain = diagnose_signs(signs)) return *certain;
    if (signs.container) return container("new namespaces");
    if (apparmor_restricts(signs)) return apparmor();
    return no_user_namespaces(signs);
  }
  if (contains(text, "uid map") || contains(text, "gid map") || contains(text, "setgroups") ||
      contains(text, "uid_map") || contains(text, "gid_map")) {
    if (apparmor_restricts(signs)) return apparmor();
    if (signs.container) return container("the id map of a user namespace");
    return {"id-map-refused", "the id map of a new user namespace is refused (" + last_line(text) +
                                  "): look at the security modules of this host (sudo dmesg | tail)"};
  }
  if (contains(text, "loopback:")) {
    if (apparmor_restricts(signs)) return apparmor();
    if (signs.container) return container("a loopback device of its own");
    return {"no-network-namespace", "the loopback device of a new network namespace cannot be set up (" +
                                        last_line(text) + "): look at the security modules of this host"};
  }
  if (contains(text, "mount proc on")) {
    if (signs.container) return container("a fresh /proc");
    return {"proc-mount-refused", "a fresh /proc is refused (" + last_line(text) +
                                      "), as where parts of /proc are mounted over: unmount those"};
  }
  if (refused) {
    if (apparmor_restricts(signs)) return apparmor();
    if (signs.container) return container("mounts");
  }
  return {"trial-failed", "a trivial enclosure ended with status " + std::to_string(outcome.code) +
                              " and wrote " + last_line(text) + ": run ccbox doctor and report this line"};
}

}  // namespace ccbox::bubblewrap
