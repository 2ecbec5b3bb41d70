#include "name_support.hpp"

#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "paths.hpp"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

namespace ccbox::bubblewrap {

namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

std::string text_of(int error_number) {
  return ::strerrordesc_np(error_number);
}

diagnosis filtered(const std::string& call) {
  return {
      "filter-around",
      "a system-call filter around ccbox refuses " + call +
          ", which name rules need: run ccbox outside of it (in a container: start that with `--security-opt "
          "seccomp=unconfined`)"};
}

// Whose line it is: "ccbox-init" or "ccbox-broker". Without that name; empty: there is none.
std::string line_of(std::string_view text, std::string_view who) {
  const std::string begin = std::string(who) + ": ";
  for (std::size_t at = 0; at < text.size();) {
    const auto line = text.substr(at, text.find('\n', at) - at);
    if (line.starts_with(begin)) return std::string(line.substr(begin.size(), 300));
    at += line.size() + 1;
  }
  return {};
}

diagnosis broker_trouble(const std::string& line, const host_signs& signs) {
  if (contains(line, "enclosure's user namespace") || contains(line, "enclosure's mount namespace") ||
      contains(line, "user namespace of the enclosure"))
    return {
        "setns-refused",
        "the broker of name rules cannot go into the namespaces of an enclosure (" + shown(line) + "): " +
            (signs.container ? "start the container with `--security-opt seccomp=unconfined --security-opt "
                               "apparmor=unconfined`"
                             : "look at the security modules of this host (sudo dmesg | tail)")};
  return {"broker-failed",
          "the broker of name rules cannot work here (" + shown(line) +
              "): look at the limits of processes, memory and descriptors (ulimit -a) and at the "
              "security modules of this host (sudo dmesg | tail)"};
}

// Of what the first process inside has tried through the broker, once it was there.
diagnosis trial_trouble(const std::string& line, const host_signs& signs) {
  if (contains(line, "could be made"))
    return {"names-leak",
            "a forbidden name could be made in the trial: report this with the output of ccbox doctor"};
  if (line.ends_with(text_of(EFAULT)))
    return {
        "memory-unreadable",
        signs.ptrace_scope == 3
            ? "nobody may read the memory of another process, which the broker of name rules must: boot with "
              "kernel.yama.ptrace_scope at 2 or less (3 stays until the next boot)"
            : "the broker of name rules may not read the memory of enclosed programs: a security module or a "
              "filter around ccbox refuses process_vm_readv (in a container: start that with `--security-opt "
              "seccomp=unconfined`)"};
  if (line.ends_with(text_of(EINVAL)))
    return {"listener-too-old",
            "this kernel does not put descriptors into the process that waits for a system call "
            "(SECCOMP_IOCTL_NOTIF_ADDFD, Linux 5.9), which name rules need: use Linux 6.2 or later"};
  return {"broker-failed", "the broker of name rules does not do what it should here (" + shown(line) +
                               "): report this with the output of ccbox doctor"};
}

diagnosis init_trouble(const std::string& line, const host_signs& signs) {
  if (contains(line, "a system-call listener is installed already"))
    return {"listener-taken",
            "something around ccbox has a system-call listener on all its processes already, and a process "
            "has only "
            "one: run ccbox outside of it (another sandbox, or a container whose seccomp profile notifies)"};
  if (line.starts_with("the trial: ")) return trial_trouble(line, signs);
  if (contains(line, "the floor does not hold"))
    return {"floor-leaks",
            "Landlock lets a file be made where it must not, as where a file system of several layers is "
            "in between: put the projects on another file system"};
  if (contains(line, "install the listener's filter")) return filtered("seccomp");
  if (line.starts_with("landlock_") && line.ends_with(text_of(E2BIG)))
    return {"landlock-full",
            "there are 16 Landlock domains around ccbox already, and Linux takes no more: run ccbox "
            "outside of the programs that made them"};
  if (line.starts_with("landlock_") || line.starts_with("Landlock"))
    return filtered("Landlock (" + shown(line) + ")");
  return {"broker-failed", "the floor under name rules cannot be laid here (" + shown(line) +
                               "): report this with the output of ccbox doctor"};
}

}  // namespace

name_signs read_name_signs() {
  name_signs signs;
  signs.landlock_version =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  signs.landlock_error = signs.landlock_version < 0 ? errno : 0;
  // Known flags are looked at before the program, which is none.
  const long listener =
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, nullptr);
  signs.listener_error = listener < 0 ? errno : 0;
  if (signs.listener_error == EFAULT) return signs;
  const std::uint32_t notify = SECCOMP_RET_USER_NOTIF;
  signs.listeners = ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &notify) == 0;
  return signs;
}

std::optional<diagnosis> diagnose_name_signs(const name_signs& signs) {
  constexpr long with_truncation = 3, with_moving = 2;
  if (signs.landlock_error == EOPNOTSUPP)
    return diagnosis{
        "landlock-off",
        "Landlock, the floor under name rules, is in this kernel but switched off: put `landlock` first "
        "into lsm= on the kernel's command line (`cat /sys/kernel/security/lsm` shows the others) and "
        "boot again"};
  if (signs.landlock_error == ENOSYS)
    return diagnosis{
        "no-landlock",
        "this kernel has no Landlock, the floor under name rules: boot Linux 6.2 or later, built with "
        "CONFIG_SECURITY_LANDLOCK (in a container: start that with `--security-opt seccomp=unconfined`)"};
  if (signs.landlock_error != 0)
    return filtered("landlock_create_ruleset (" + text_of(signs.landlock_error) + ")");
  if (signs.landlock_version < with_truncation)
    return diagnosis{
        "landlock-too-old",
        "Landlock of this kernel is version " + std::to_string(signs.landlock_version) +
            ", and name rules need version 3 (Linux 6.2), which refuses truncating" +
            (signs.landlock_version < with_moving ? ", and 2 (Linux 5.19), which lets files be moved" : "") +
            ": boot a later kernel"};
  if (signs.listener_error == EFAULT) return std::nullopt;
  if (signs.listener_error != EINVAL) return filtered("seccomp (" + text_of(signs.listener_error) + ")");
  if (!signs.listeners)
    return diagnosis{
        "no-listener",
        "this kernel cannot hand a system call to another process (SECCOMP_RET_USER_NOTIF, Linux 5.0), "
        "which name rules need: boot Linux 6.2 or later"};
  return diagnosis{
      "listener-too-old",
      "this kernel restarts a system call that waits for the broker of name rules when a signal comes "
      "(SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, Linux 5.19): boot Linux 6.2 or later"};
}

std::optional<diagnosis> diagnose_broker(const std::string& broker_path) {
  struct stat status {};
  if (::stat(broker_path.c_str(), &status) != 0)
    return diagnosis{"no-broker", shown(broker_path) + ", which refuses names, cannot be found (" +
                                      text_of(errno) + "): install ccbox again"};
  if (!S_ISREG(status.st_mode) || ::access(broker_path.c_str(), X_OK) != 0)
    return diagnosis{
        "no-broker",
        shown(broker_path) + ", which refuses names, is no program that may be executed: chmod 755 it"};
  return std::nullopt;
}

diagnosis diagnose_name_trial(const trial_outcome& outcome, const host_signs& signs) {
  if (const auto line = line_of(outcome.stderr_text, "ccbox-broker"); !line.empty())
    return broker_trouble(line, signs);
  if (const auto line = line_of(outcome.stderr_text, "ccbox-init"); !line.empty())
    return init_trouble(line, signs);
  if (outcome.timed_out)
    return {"broker-timed-out",
            "the broker of name rules did not answer in time: look at the load of this host, and run ccbox "
            "probe again"};
  if (outcome.code == 0)
    return {"broker-silent",
            "the broker of name rules did not tell what it had refused in the trial: report this with "
            "the output of ccbox doctor"};
  return {"broker-failed",
          "a trial of name rules ended with status " + std::to_string(outcome.code) +
              " and wrote nothing that is known: report this with the output of ccbox doctor"};
}

}  // namespace ccbox::bubblewrap
