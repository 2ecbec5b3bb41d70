#include "syscall_filter.hpp"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace ccbox {
namespace {

// (argument & mask) against value. All that is looked at is 32 bits wide in the kernel too (int, unsigned,
// umode_t), so what a caller puts into the upper half of the register must not change the answer; `upper` is
// for pointers.
struct condition {
  enum class operation { equal, not_equal, any_bit };
  unsigned argument;
  operation op;
  std::uint32_t value;
  std::uint32_t mask = ~0u;
  bool upper = false;
};
condition equal(unsigned argument, std::uint32_t value) {
  return {argument, condition::operation::equal, value};
}
condition other_than(unsigned argument, std::uint32_t value, std::uint32_t mask = ~0u) {
  return {argument, condition::operation::not_equal, value, mask};
}
condition any_bit(unsigned argument, std::uint32_t bits) {
  return {argument, condition::operation::any_bit, bits};
}
condition upper_half_set(unsigned argument) {
  return {argument, condition::operation::any_bit, ~0u, ~0u, true};
}

// Refused with `error_number` when all conditions hold. Several rules of one system call stand together.
struct rule {
  const char* syscall;
  int error_number;
  std::vector<condition> when = {};
  int number = -1;  // for calls that libseccomp 2.5.4 does not know; the same on every architecture
};

constexpr std::uint32_t set_user_id = S_ISUID;
constexpr std::uint32_t creating = O_CREAT | (O_TMPFILE & ~O_DIRECTORY);
constexpr std::uint32_t new_namespace =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
constexpr std::uint32_t harmless_unshare =
    CLONE_FILES | CLONE_FS | CLONE_SYSVSEM | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM;
constexpr std::uint32_t type_of_socket = 0xf;  // without SOCK_NONBLOCK and SOCK_CLOEXEC
constexpr std::uint32_t init_pid = 1;
constexpr std::uint32_t linux32 = PER_LINUX32, uname26 = UNAME26, no_randomize = ADDR_NO_RANDOMIZE;

// Those with conditions come first, frequent ones before others: they run the program on every call, whereas
// the kernel remembers which system calls it allows whatever their arguments.
std::vector<rule> rules(bool without_openat2) {
  std::vector<rule> all{
      {"openat", EPERM, {any_bit(2, creating), any_bit(3, set_user_id)}},
      {"open", EPERM, {any_bit(1, creating), any_bit(2, set_user_id)}},
      {"ioctl", EPERM, {equal(1, TIOCSTI)}},
      {"ioctl", EPERM, {equal(1, TIOCLINUX)}},
      {"clone", EPERM, {any_bit(0, new_namespace)}},
      // What could reach a socket of the host. Pairs are connected for good, but for datagram ones.
      {"socket", EPERM, {equal(0, AF_UNIX)}},
      {"socket", EPROTONOSUPPORT, {equal(0, AF_NETLINK), other_than(2, NETLINK_ROUTE)}},
      {"socket", EAFNOSUPPORT, {other_than(0, AF_INET), other_than(0, AF_INET6), other_than(0, AF_NETLINK)}},
      {"socketpair", EAFNOSUPPORT, {other_than(0, AF_UNIX)}},
      {"socketpair",
       EPERM,
       {other_than(1, SOCK_STREAM, type_of_socket), other_than(1, SOCK_SEQPACKET, type_of_socket)}},
      {"fchmod", EPERM, {any_bit(1, set_user_id)}},
      {"chmod", EPERM, {any_bit(1, set_user_id)}},
      {"fchmodat", EPERM, {any_bit(2, set_user_id)}},
      {"fchmodat2", EPERM, {any_bit(2, set_user_id)}, 452},
      {"creat", EPERM, {any_bit(1, set_user_id)}},
      {"mknod", EPERM, {any_bit(1, set_user_id)}},
      {"mknodat", EPERM, {any_bit(2, set_user_id)}},
      {"unshare", EPERM, {any_bit(0, ~harmless_unshare)}},
      {"personality",
       EPERM,
       {other_than(0, PER_LINUX), other_than(0, ~0u), other_than(0, no_randomize), other_than(0, linux32),
        other_than(0, linux32 | no_randomize), other_than(0, uname26), other_than(0, linux32 | uname26)}},
      // ccbox-init has the user id of its commands, and these ask for no more than that.
      {"prlimit64", EPERM, {equal(0, init_pid), any_bit(2, ~0u)}},
      {"prlimit64", EPERM, {equal(0, init_pid), upper_half_set(2)}},
      {"sched_setaffinity", EPERM, {equal(0, init_pid)}},
      {"sched_setscheduler", EPERM, {equal(0, init_pid)}},
      {"sched_setparam", EPERM, {equal(0, init_pid)}},
      {"sched_setattr", EPERM, {equal(0, init_pid)}},
      {"setpriority", EPERM, {equal(0, PRIO_PROCESS), equal(1, init_pid)}},
      {"ioprio_set", EPERM, {equal(0, 1 /* IOPRIO_WHO_PROCESS */), equal(1, init_pid)}},

      {"clone3", ENOSYS},  // its flags are in memory; glibc falls back to clone
      {"setns", EPERM},
      {"mount", EPERM},
      {"umount2", EPERM},
      {"pivot_root", EPERM},
      {"chroot", EPERM},
      {"open_tree", EPERM},
      {"move_mount", EPERM},
      {"fsopen", EPERM},
      {"fsconfig", EPERM},
      {"fsmount", EPERM},
      {"fspick", EPERM},
      {"mount_setattr", EPERM},
      {"open_tree_attr", EPERM, {}, 467},
      {"io_uring_setup", EPERM},
      {"io_uring_enter", EPERM},
      {"io_uring_register", EPERM},
      {"ptrace", EPERM},
      {"process_vm_readv", EPERM},
      {"process_vm_writev", EPERM},
      {"pidfd_getfd", EPERM},
      {"kcmp", EPERM},
      {"keyctl", EPERM},
      {"add_key", EPERM},
      {"request_key", EPERM},
      {"bpf", EPERM},
      {"perf_event_open", EPERM},
      {"userfaultfd", EPERM},
      {"open_by_handle_at", EPERM},
      {"kexec_load", EPERM},
      {"kexec_file_load", EPERM},
      {"init_module", EPERM},
      {"finit_module", EPERM},
      {"delete_module", EPERM},
      {"quotactl", EPERM},
      {"quotactl_fd", EPERM, {}, 443},
      {"swapon", EPERM},
      {"swapoff", EPERM},
      {"reboot", EPERM},
      {"acct", EPERM},
      {"syslog", EPERM},
      {"settimeofday", EPERM},
      {"clock_settime", EPERM},
      {"iopl", EPERM},
      {"ioperm", EPERM},
      {"modify_ldt", EPERM},
      {"lookup_dcookie", EPERM},
      {"uselib", EPERM},
  };
  if (without_openat2) all.push_back({"openat2", ENOSYS});
  return all;
}

constexpr std::uint32_t first_x32_number = 0x40000000;
constexpr std::uint32_t no_syscall = ~0u;  // a tracer's way to skip one

struct target {
  std::uint32_t seccomp_token;  // SCMP_ARCH_*
  std::uint32_t audit_arch;
};

std::optional<target> resolve(filter_architecture arch) {
  constexpr target x86_64{SCMP_ARCH_X86_64, AUDIT_ARCH_X86_64};
  constexpr target aarch64{SCMP_ARCH_AARCH64, AUDIT_ARCH_AARCH64};
  const auto native = seccomp_arch_native();
  if (arch == filter_architecture::x86_64 ||
      (arch == filter_architecture::native && native == SCMP_ARCH_X86_64))
    return x86_64;
  if (arch == filter_architecture::aarch64 ||
      (arch == filter_architecture::native && native == SCMP_ARCH_AARCH64))
    return aarch64;
  return std::nullopt;
}

using instructions = std::vector<sock_filter>;

sock_filter load(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}
sock_filter jump(std::uint16_t comparison, std::uint32_t value, std::size_t if_true, std::size_t if_false) {
  return BPF_JUMP(static_cast<std::uint16_t>(BPF_JMP | BPF_K | comparison), value,
                  static_cast<std::uint8_t>(if_true), static_cast<std::uint8_t>(if_false));
}
sock_filter answer(std::uint32_t action) {
  return BPF_STMT(BPF_RET | BPF_K, action);
}
sock_filter refuse(int error_number) {
  return answer(SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error_number));
}

// Falls through to what follows when not all conditions hold.
instructions code_of(const rule& r) {
  instructions code;
  std::vector<std::size_t> tests;
  for (const auto& c : r.when) {
    // Both architectures are little-endian: the low half comes first.
    code.push_back(load(offsetof(seccomp_data, args) + 8 * c.argument + (c.upper ? 4 : 0)));
    if (c.mask != ~0u) code.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, c.mask));
    tests.push_back(code.size());
    code.push_back(jump(c.op == condition::operation::any_bit ? BPF_JSET : BPF_JEQ, c.value, 0, 0));
  }
  code.push_back(refuse(r.error_number));
  for (std::size_t i = 0; i < tests.size(); ++i) {
    auto& test = code[tests[i]];
    const auto beyond = static_cast<std::uint8_t>(code.size() - tests[i] - 1);
    (r.when[i].op == condition::operation::not_equal ? test.jt : test.jf) = beyond;
  }
  return code;
}

// Nothing: this architecture never had the call. An error: nobody knows its number, so the filter would have
// a hole.
result<std::optional<std::uint32_t>> number_of(const rule& r, const target& on) {
  const int number = seccomp_syscall_resolve_name_arch(on.seccomp_token, r.syscall);
  if (number >= 0) return std::optional<std::uint32_t>(static_cast<std::uint32_t>(number));
  if (r.number >= 0) return std::optional<std::uint32_t>(static_cast<std::uint32_t>(r.number));
  if (number != __NR_SCMP_ERROR) return std::optional<std::uint32_t>();
  return error{error_code::unenforceable,
               "system-call filter: libseccomp does not know the system call " + quoted(r.syscall),
               "install libseccomp 2.5.4 or later"};
}

}  // namespace

result<std::string> build_base_filter(filter_architecture arch, bool without_openat2) {
  const auto on = resolve(arch);
  if (!on)
    return error{
        error_code::unenforceable, "system-call filter: this architecture is neither x86_64 nor aarch64", {}};

  instructions code{
      load(offsetof(seccomp_data, arch)), jump(BPF_JEQ, on->audit_arch, 1, 0),
      answer(SECCOMP_RET_KILL_PROCESS),  // as where the kernel cannot run such programs at all
      load(offsetof(seccomp_data, nr)),   jump(BPF_JGE, first_x32_number, 0, 2),
      jump(BPF_JEQ, no_syscall, 1, 0),    refuse(ENOSYS),
  };
  const auto all = rules(without_openat2);
  for (std::size_t i = 0; i < all.size();) {
    const auto number = number_of(all[i], *on);
    if (!number) return number.error();
    instructions body;
    bool conditional = true;
    const std::string_view name = all[i].syscall;
    for (; i < all.size() && all[i].syscall == name; ++i) {
      const auto part = code_of(all[i]);
      body.insert(body.end(), part.begin(), part.end());
      conditional = !all[i].when.empty();
    }
    if (!*number) continue;
    if (conditional) body.push_back(answer(SECCOMP_RET_ALLOW));
    code.push_back(jump(BPF_JEQ, **number, 0, body.size()));
    code.insert(code.end(), body.begin(), body.end());
  }
  code.push_back(answer(SECCOMP_RET_ALLOW));
  return std::string(reinterpret_cast<const char*>(code.data()), code.size() * sizeof(sock_filter));
}

}  // namespace ccbox
