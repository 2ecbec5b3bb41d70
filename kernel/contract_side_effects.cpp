// "Starts nothing, writes nothing", enforced by the kernel of the host: a system-call filter traps every call
// that would, and the handler reports which one it was.
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "contract_checks.hpp"

namespace ccbox::contract {
namespace {

verdict* report = nullptr;

void on_forbidden_call(int, siginfo_t* info, void*) {
  if (report) report->forbidden_call = info->si_syscall + 1;
  ::syscall(SYS_exit_group,
            1);  // straight: the call may have been made under locks that a sanitizer's _exit takes
}

constexpr const char* never[] = {
    "fork",      "vfork",     "execve",     "execveat",    "openat2",       "creat",     "mkdir",
    "mkdirat",   "mknod",     "mknodat",    "unlink",      "unlinkat",      "rmdir",     "rename",
    "renameat",  "renameat2", "link",       "linkat",      "symlink",       "symlinkat", "truncate",
    "ftruncate", "fallocate", "chmod",      "fchmod",      "fchmodat",      "chown",     "fchown",
    "lchown",    "fchownat",  "utimensat",  "setxattr",    "lsetxattr",     "fsetxattr", "removexattr",
    "mount",     "umount2",   "pivot_root", "chroot",      "chdir",         "unshare",   "setns",
    "bind",      "kill",      "setsid",     "sethostname", "io_uring_setup"};

}  // namespace

void report_side_effects_to(verdict* v) {
  report = v;
}

std::string system_call_name(int number) {
  const std::unique_ptr<char, void (*)(void*)> name(
      ::seccomp_syscall_resolve_num_arch(::seccomp_arch_native(), number), ::free);
  return name ? std::string(name.get()) : std::to_string(number);
}

void forbid_side_effects() {
  const std::unique_ptr<void, void (*)(scmp_filter_ctx)> filter(::seccomp_init(SCMP_ACT_ALLOW),
                                                                ::seccomp_release);
  if (!filter) throw std::bad_alloc();
  int failed = 0;
  const auto trap = [&](const char* name, std::initializer_list<scmp_arg_cmp> arguments) {
    const int number = ::seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR) return;  // a call that this architecture lacks cannot be made
    const auto* array = arguments.size() ? arguments.begin() : nullptr;
    failed |= ::seccomp_rule_add_array(filter.get(), SCMP_ACT_TRAP, number,
                                       static_cast<unsigned>(arguments.size()), array);
  };
  for (const char* name : never)
    trap(name, {});
  // Threads are a plugin's own business; clone3 hides its flags in memory, and libraries fall back to clone.
  trap("clone", {scmp_arg_cmp{0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0}});
  failed |= ::seccomp_rule_add_array(filter.get(), SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0, nullptr);
  constexpr scmp_datum_t writes[][2] = {
      {O_ACCMODE, O_WRONLY}, {O_ACCMODE, O_RDWR}, {O_CREAT, O_CREAT}, {O_TRUNC, O_TRUNC}};
  for (const auto& [mask, value] : writes) {
    trap("open", {scmp_arg_cmp{1, SCMP_CMP_MASKED_EQ, mask, value}});
    trap("openat", {scmp_arg_cmp{2, SCMP_CMP_MASKED_EQ, mask, value}});
  }
  struct sigaction action = {};
  action.sa_sigaction = on_forbidden_call;
  action.sa_flags = SA_SIGINFO;
  if (failed || ::sigaction(SIGSYS, &action, nullptr) != 0 || ::seccomp_load(filter.get()) != 0)
    throw violation{"the suite could not install its system-call filter: " + std::string(::strerror(errno))};
}

}  // namespace ccbox::contract
