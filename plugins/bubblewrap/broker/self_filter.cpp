#include "broker/self_filter.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ccbox::bubblewrap {

namespace {

#if defined(__aarch64__)
constexpr std::uint32_t machine = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t machine = AUDIT_ARCH_X86_64;
#endif

constexpr long allowed[] = {
    // For the callers, the frequent ones first.
    SYS_ioctl, SYS_process_vm_readv, SYS_openat, SYS_readlinkat, SYS_close, SYS_fcntl, SYS_openat2,
    SYS_renameat2, SYS_unlinkat, SYS_mkdirat, SYS_newfstatat, SYS_fstat, SYS_statx, SYS_umask, SYS_read,
    SYS_linkat, SYS_symlinkat, SYS_mknodat, SYS_getdents64, SYS_ftruncate, SYS_fstatfs, SYS_lseek, SYS_write,
    SYS_fchdir, SYS_getcwd,           // asking where a directory is
    SYS_fchmod,                       // of configuration that it has checked
    SYS_sendto,                       // on the socket that it has
    SYS_pidfd_open, SYS_pidfd_getfd,  // of callers whose /proc/N/fd is closed
    // What a thread begins with: one of ours may not have come so far yet.
    SYS_rseq, SYS_set_robust_list,
    // Memory, locks, the end.
    SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_brk, SYS_futex, SYS_nanosleep,
    SYS_clock_nanosleep, SYS_clock_gettime, SYS_restart_syscall, SYS_rt_sigreturn, SYS_rt_sigprocmask,
    SYS_sched_yield, SYS_ppoll, SYS_rt_sigsuspend, SYS_getrandom, SYS_wait4, SYS_exit, SYS_exit_group};

}  // namespace

bool restrict_own_calls() {
  std::vector<sock_filter> code{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, machine, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  for (const long number : allowed) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1));
    code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

}  // namespace ccbox::bubblewrap
