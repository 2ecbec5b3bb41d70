#include "syscall_filter.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <string>
#include <vector>

#include "support/bpf_interpreter.hpp"

using namespace ccbox;
using ccbox::test::bpf_program;

namespace {

constexpr std::uint32_t allowed = SECCOMP_RET_ALLOW, killed = SECCOMP_RET_KILL_PROCESS;
constexpr std::uint32_t refused(std::uint32_t error_number) {
  return SECCOMP_RET_ERRNO | error_number;
}
constexpr std::uint32_t x32_bit = 0x40000000;

using arguments = std::array<std::uint64_t, 6>;

bpf_program program(filter_architecture arch, bool without_openat2 = false) {
  const auto bytes = build_base_filter(arch, without_openat2);
  REQUIRE(bytes.has_value());
  return bpf_program::from_bytes(*bytes);
}

test::bpf_verdict run(const bpf_program& filter, std::uint32_t arch, std::uint32_t number,
                      const arguments& args = {}) {
  seccomp_data data{};
  data.nr = static_cast<int>(number);
  data.arch = arch;
  std::copy(args.begin(), args.end(), data.args);
  return filter.run(data);
}

std::uint32_t on_x86_64(std::uint32_t number, const arguments& args = {}) {
  static const auto filter = program(filter_architecture::x86_64);
  return run(filter, AUDIT_ARCH_X86_64, number, args).action;
}
std::uint32_t on_aarch64(std::uint32_t number, const arguments& args = {}) {
  static const auto filter = program(filter_architecture::aarch64);
  return run(filter, AUDIT_ARCH_AARCH64, number, args).action;
}

// Written down from the kernel's own tables, not from the filter.
struct known_calls {
  std::uint32_t arch;
  std::set<std::uint32_t> eperm;         // whatever the arguments
  std::set<std::uint32_t> on_arguments;  // decided by an argument; the case of all zero is below
  std::uint32_t clone3 = 435;
};

const known_calls x86_64_calls{
    AUDIT_ARCH_X86_64,
    {
        101,  // ptrace
        103,  // syslog
        134,  // uselib
        154, 155, 161, 163, 164, 165, 166, 167,
        168,  // modify_ldt pivot_root chroot acct settimeofday mount umount2 swapon/off
        169, 172, 173, 175, 176, 179,  // reboot iopl ioperm init_module delete_module quotactl
        212, 227,                      // lookup_dcookie clock_settime
        246, 248, 249, 250,            // kexec_load add_key request_key keyctl
        298, 304, 308, 310, 311, 312, 313, 320, 321,
        323,            // perf_event_open open_by_handle_at setns process_vm_* kcmp
                        // finit_module kexec_file_load bpf userfaultfd
        425, 426, 427,  // io_uring_*
        428, 429, 430, 431, 432, 433, 438, 442, 443,
        467,  // open_tree move_mount fsopen fsconfig fsmount fspick
              // pidfd_getfd mount_setattr quotactl_fd open_tree_attr
    },
    // open ioctl socket socketpair clone chmod fchmod creat mknod personality setpriority sched_setparam
    // sched_setscheduler sched_setaffinity ioprio_set openat mknodat fchmodat unshare prlimit64 sched_setattr
    // fchmodat2
    {2, 16, 41, 53, 56, 90, 91, 85, 133, 135, 141, 142, 144, 203, 251, 257, 259, 268, 272, 302, 314, 452},
};

const known_calls aarch64_calls{
    AUDIT_ARCH_AARCH64,
    {
        18,  // lookup_dcookie
        39,
        40,
        41,
        51,
        60,
        89,  // umount2 mount pivot_root chroot quotactl acct
        104,
        105,
        106,
        112,
        116,
        117,
        142,
        170,  // kexec_load init_module delete_module clock_settime syslog ptrace
              // reboot settimeofday
        217,
        218,
        219,
        224,
        225,
        241,
        265,
        268,  // add_key request_key keyctl swapon swapoff perf_event_open
              // open_by_handle_at setns
        270,
        271,
        272,
        273,
        280,
        282,
        294,  // process_vm_* kcmp finit_module bpf userfaultfd kexec_file_load
        425,
        426,
        427,  // io_uring_*
        428,
        429,
        430,
        431,
        432,
        433,
        438,
        442,
        443,
        467,
    },
    // ioctl ioprio_set mknodat fchmod fchmodat openat personality unshare sched_setparam sched_setscheduler
    // sched_setaffinity setpriority socket socketpair clone prlimit64 sched_setattr fchmodat2
    {29, 30, 33, 52, 53, 56, 92, 97, 118, 119, 122, 140, 198, 199, 220, 261, 274, 452},
};

std::uint32_t expected_with_zeros(const known_calls& calls, std::uint32_t number) {
  if (number == calls.clone3) return refused(ENOSYS);
  if (calls.eperm.count(number)) return refused(EPERM);
  const bool x86 = calls.arch == AUDIT_ARCH_X86_64;
  if (number == (x86 ? 41u : 198u) || number == (x86 ? 53u : 199u))
    return refused(EAFNOSUPPORT);  // AF_UNSPEC
  return allowed;
}

void check_every_number(const bpf_program& filter, const known_calls& calls) {
  for (std::uint32_t number = 0; number <= 600; ++number) {
    CAPTURE(number);
    const auto verdict = run(filter, calls.arch, number);
    CHECK(verdict.action == expected_with_zeros(calls, number));
    CHECK(verdict.read_arguments == (calls.on_arguments.count(number) == 1));
    if (calls.on_arguments.count(number)) continue;
    const auto filled = run(filter, calls.arch, number, {~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull});
    CHECK(filled.action == verdict.action);
  }
}

void check_refused_for_every_number(const bpf_program& filter, std::uint32_t arch, std::uint32_t bits,
                                    std::uint32_t expected) {
  for (std::uint32_t number = 0; number <= 600; ++number) {
    CAPTURE(number);
    const auto verdict = run(filter, arch, number | bits);
    CHECK(verdict.action == expected);
    CHECK_FALSE(verdict.read_arguments);
  }
}

// The low 32 bits as given, clean, with rubbish above, and sign-extended.
std::vector<std::uint64_t> spellings(std::uint32_t low) {
  return {low, 0x100000000ull | low, 0xffffffff00000000ull | low, 0xdeadbeef00000000ull | low};
}

sock_filter stmt(int code, std::uint32_t k) {
  return {static_cast<std::uint16_t>(code), 0, 0, k};
}
sock_filter branch_if(int code, std::uint32_t k, std::uint8_t jt, std::uint8_t jf) {
  return {static_cast<std::uint16_t>(code), jt, jf, k};
}

constexpr std::uint64_t path = 0x7f0000001000;  // some pointer

}  // namespace

TEST_CASE("x86_64: every system call from 0 to 600 has the verdict of the table") {
  check_every_number(program(filter_architecture::x86_64), x86_64_calls);
}

TEST_CASE("aarch64: every system call from 0 to 600 has the verdict of the table") {
  check_every_number(program(filter_architecture::aarch64), aarch64_calls);
}

TEST_CASE("a foreign architecture is killed on every number, before anything else is looked at") {
  const auto x86_64 = program(filter_architecture::x86_64), aarch64 = program(filter_architecture::aarch64);
  check_refused_for_every_number(x86_64, AUDIT_ARCH_I386, 0, killed);
  check_refused_for_every_number(x86_64, AUDIT_ARCH_I386, x32_bit, killed);
  check_refused_for_every_number(x86_64, AUDIT_ARCH_AARCH64, 0, killed);
  check_refused_for_every_number(x86_64, AUDIT_ARCH_ARM, 0, killed);
  check_refused_for_every_number(x86_64, 0, 0, killed);
  check_refused_for_every_number(aarch64, AUDIT_ARCH_ARM, 0, killed);
  check_refused_for_every_number(aarch64, AUDIT_ARCH_X86_64, 0, killed);
  check_refused_for_every_number(aarch64, AUDIT_ARCH_I386, 0, killed);
}

TEST_CASE("x32 does not exist, as on most kernels") {
  check_refused_for_every_number(program(filter_architecture::x86_64), AUDIT_ARCH_X86_64, x32_bit,
                                 refused(ENOSYS));
  check_refused_for_every_number(program(filter_architecture::x86_64), AUDIT_ARCH_X86_64, 0x80000000,
                                 refused(ENOSYS));
  CHECK(on_x86_64(0x3fffffff) == allowed);  // the kernel has none with that number
  CHECK(on_x86_64(0xfffffffe) == refused(ENOSYS));
}

TEST_CASE("the number -1, by which a tracer outside skips a call, is the kernel's to answer") {
  CHECK(on_x86_64(0xffffffff) == allowed);
  CHECK(on_aarch64(0xffffffff) == allowed);
}

TEST_CASE("openat2 exists but for root without a broker, whose set-user-id files would be root's") {
  for (const auto arch : {filter_architecture::x86_64, filter_architecture::aarch64}) {
    const auto token = arch == filter_architecture::x86_64 ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64;
    CHECK(run(program(arch, false), token, 437).action == allowed);
    CHECK(run(program(arch, true), token, 437).action == refused(ENOSYS));
  }
}

TEST_CASE("the filter for root without a broker differs in openat2 alone") {
  const auto plain = program(filter_architecture::x86_64, false),
             root = program(filter_architecture::x86_64, true);
  for (std::uint32_t number = 0; number <= 600; ++number) {
    CAPTURE(number);
    if (number != 437)
      CHECK(run(root, AUDIT_ARCH_X86_64, number).action == run(plain, AUDIT_ARCH_X86_64, number).action);
  }
}

TEST_CASE("typing into or pasting onto a terminal is refused however the number is padded") {
  for (const std::uint32_t command : {0x5412u /* TIOCSTI */, 0x541cu /* TIOCLINUX */})
    for (const auto spelling : spellings(command)) {
      CAPTURE(spelling);
      CHECK(on_x86_64(16, {0, spelling}) == refused(EPERM));
      CHECK(on_aarch64(29, {0, spelling}) == refused(EPERM));
    }
  for (const std::uint32_t command : {0x5401u /* TCGETS */, 0x540eu /* TIOCSCTTY */, 0x5411u, 0x5413u,
                                      0x5414u, 0x541bu, 0x541du, 0x80045430u /* TIOCGPTN */, 0x5412u << 16}) {
    CAPTURE(command);
    CHECK(on_x86_64(16, {0, command}) == allowed);
  }
}

TEST_CASE("clone makes processes and threads but no namespace") {
  constexpr std::uint64_t thread = 0x3d0f00, fork = 0x1200011, vfork = 0x4111;
  for (const auto flags : {thread, fork, vfork}) {
    CHECK(on_x86_64(56, {flags}) == allowed);
    CHECK(on_aarch64(220, {flags}) == allowed);
  }
  for (const std::uint32_t flag :
       {0x00020000u, 0x02000000u, 0x04000000u, 0x08000000u, 0x10000000u, 0x20000000u,
        0x40000000u})  // NEWNS NEWCGROUP NEWUTS NEWIPC NEWUSER NEWPID NEWNET
    for (const auto spelling : spellings(flag | 17)) {
      CAPTURE(spelling);
      CHECK(on_x86_64(56, {spelling}) == refused(EPERM));
      CHECK(on_aarch64(220, {spelling}) == refused(EPERM));
    }
}

TEST_CASE("unshare separates files and directories of threads, and nothing else, known or yet to come") {
  for (const std::uint32_t flags : {0u, 0x400u /* FILES */, 0x200u /* FS */, 0x40000u /* SYSVSEM */, 0x600u})
    CHECK(on_x86_64(272, {flags}) == allowed);
  for (const std::uint32_t flag : {0x80u /* NEWTIME */, 0x00020000u, 0x02000000u, 0x04000000u, 0x08000000u,
                                   0x10000000u, 0x20000000u, 0x40000000u, 0x80000000u, 0x00100000u})
    for (const auto spelling : spellings(flag | 0x200)) {
      CAPTURE(spelling);
      CHECK(on_x86_64(272, {spelling}) == refused(EPERM));
      CHECK(on_aarch64(97, {spelling}) == refused(EPERM));
    }
}

TEST_CASE("sockets: the internet and routing information, nothing that leads to the host") {
  const auto socket = [](std::uint64_t domain, std::uint64_t type, std::uint64_t protocol) {
    const auto verdict = on_x86_64(41, {domain, type, protocol});
    CHECK(on_aarch64(198, {domain, type, protocol}) == verdict);
    return verdict;
  };
  for (const std::uint64_t domain : {AF_INET, AF_INET6})
    for (const std::uint64_t type : {1 /* STREAM */, 2 /* DGRAM */, 1 | SOCK_CLOEXEC | SOCK_NONBLOCK}) {
      CHECK(socket(domain, type, 0) == allowed);
      CHECK(socket(domain, type, 6) == allowed);
    }
  CHECK(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0) == allowed);
  for (std::uint64_t protocol = 1; protocol < 32; ++protocol)
    CHECK(socket(AF_NETLINK, SOCK_RAW, protocol) == refused(EPROTONOSUPPORT));
  for (const auto domain : spellings(AF_UNIX))
    CHECK(socket(domain, SOCK_STREAM, 0) == refused(EPERM));
  for (const auto domain : spellings(AF_INET))
    CHECK(socket(domain, SOCK_STREAM, 0) == allowed);
  for (const auto protocol : spellings(9))
    CHECK(socket(AF_NETLINK, SOCK_RAW, protocol) == refused(EPROTONOSUPPORT));
  for (std::uint32_t domain = 0; domain < 64; ++domain) {
    if (domain == AF_UNIX || domain == AF_INET || domain == AF_INET6 || domain == AF_NETLINK) continue;
    for (const auto spelling : spellings(domain)) {
      CAPTURE(spelling);
      CHECK(socket(spelling, SOCK_STREAM, 0) == refused(EAFNOSUPPORT));
    }
  }
}

TEST_CASE("socket pairs: connected for good, so no datagram pairs, under any spelling of their type") {
  const auto pair = [](std::uint64_t domain, std::uint64_t type) {
    const auto verdict = on_x86_64(53, {domain, type, 0, path});
    CHECK(on_aarch64(199, {domain, type, 0, path}) == verdict);
    return verdict;
  };
  for (const std::uint32_t flags :
       {0u, std::uint32_t{SOCK_CLOEXEC}, std::uint32_t{SOCK_NONBLOCK | SOCK_CLOEXEC}}) {
    for (const auto type : spellings(SOCK_STREAM | flags))
      CHECK(pair(AF_UNIX, type) == allowed);
    for (const auto type : spellings(SOCK_SEQPACKET | flags))
      CHECK(pair(AF_UNIX, type) == allowed);
    for (const std::uint32_t base :
         {0, 2 /* DGRAM */, 3 /* RAW, which is a datagram pair too */, 4, 6, 10, 15})
      for (const auto type : spellings(base | flags)) {
        CAPTURE(type);
        CHECK(pair(AF_UNIX, type) == refused(EPERM));
      }
  }
  for (const std::uint64_t domain : {0, 2, 10, 16, 30 /* TIPC */, 40})
    CHECK(pair(domain, SOCK_STREAM) == refused(EAFNOSUPPORT));
}

TEST_CASE("no call makes a file set-user-id; the same call with another mode works") {
  struct place {
    std::uint32_t x86_64, aarch64;
    unsigned mode;
    arguments rest;
  };
  constexpr std::uint32_t absent = 0xffff;
  const std::vector<place> places{
      {90, absent, 1, {path}},           // chmod
      {91, 52, 1, {3}},                  // fchmod
      {268, 53, 2, {3, path}},           // fchmodat
      {452, 452, 2, {3, path}},          // fchmodat2
      {85, absent, 1, {path}},           // creat
      {133, absent, 1, {path}},          // mknod
      {259, 33, 2, {3, path}},           // mknodat
      {2, absent, 2, {path, O_CREAT}},   // open
      {257, 56, 3, {3, path, O_CREAT}},  // openat
      {257, 56, 3, {3, path, O_TMPFILE | O_RDWR}},
      {257, 56, 3, {3, path, 0xabcd00000000ull | O_CREAT | O_EXCL | O_WRONLY}},
  };
  for (const auto& place : places) {
    CAPTURE(place.x86_64);
    const auto verdict = [&place](std::uint64_t mode) {
      auto args = place.rest;
      args[place.mode] = mode;
      const auto on_x86 = on_x86_64(place.x86_64, args);
      if (place.aarch64 != absent) CHECK(on_aarch64(place.aarch64, args) == on_x86);
      return on_x86;
    };
    for (const std::uint32_t mode : {04000u, 04755u, 06755u, 0104755u})
      for (const auto spelling : spellings(mode))
        CHECK(verdict(spelling) == refused(EPERM));
    for (const std::uint32_t mode : {0u, 0755u, 01777u, 02775u, 0100644u})
      for (const auto spelling : spellings(mode))
        CHECK(verdict(spelling) == allowed);
  }
}

TEST_CASE("an open that creates nothing is not judged by a mode that nobody set") {
  CHECK(on_x86_64(257, {3, path, O_RDONLY, 04755}) == allowed);
  CHECK(on_x86_64(257, {3, path, O_RDWR | O_TRUNC, ~0ull}) == allowed);
  CHECK(on_x86_64(257, {3, path, O_DIRECTORY | O_RDONLY, ~0ull}) == allowed);
  CHECK(on_x86_64(2, {path, O_WRONLY, 04755}) == allowed);
  CHECK(on_aarch64(56, {3, path, O_RDONLY, 04755}) == allowed);
}

TEST_CASE("personality: only values that weaken nothing") {
  for (const std::uint32_t value : {0u, 0xffffffffu, 0x8u, 0x20000u, 0x20008u, 0x40000u, 0x40008u})
    for (const auto spelling : spellings(value)) {
      CHECK(on_x86_64(135, {spelling}) == allowed);
      CHECK(on_aarch64(92, {spelling}) == allowed);
    }
  for (const std::uint32_t value : {0x400000u /* READ_IMPLIES_EXEC */, 0x100000u /* MMAP_PAGE_ZERO */,
                                    0x440000u, 0x1u, 0x200000u, 0x8000000u, 0x440008u})
    for (const auto spelling : spellings(value))
      CHECK(on_x86_64(135, {spelling}) == refused(EPERM));
}

TEST_CASE("init's limits and scheduling are not its commands' to change; their own are") {
  for (const auto one : spellings(1)) {
    CAPTURE(one);
    CHECK(on_x86_64(302, {one, 7, path, 0}) == refused(EPERM));
    CHECK(on_x86_64(302, {one, 7, 0x700000000000, 0}) == refused(EPERM));  // low half of the pointer zero
    CHECK(on_x86_64(302, {one, 7, 0x1000, 0}) == refused(EPERM));
    CHECK(on_x86_64(302, {one, 7, 0, path}) == allowed);  // reads them
    for (const std::uint32_t number : {142u, 144u, 203u, 314u})
      CHECK(on_x86_64(number, {one}) == refused(EPERM));
    CHECK(on_x86_64(141, {0, one, 19}) == refused(EPERM));
    CHECK(on_x86_64(251, {1, one, 0}) == refused(EPERM));
  }
  for (const std::uint64_t pid : {0, 2, 4242}) {
    CHECK(on_x86_64(302, {pid, 7, path, path}) == allowed);
    for (const std::uint32_t number : {142u, 144u, 203u, 314u})
      CHECK(on_x86_64(number, {pid}) == allowed);
    CHECK(on_x86_64(141, {0, pid, 19}) == allowed);
    CHECK(on_x86_64(251, {1, pid, 0}) == allowed);
  }
  CHECK(on_aarch64(261, {1, 7, path, 0}) == refused(EPERM));
  CHECK(on_aarch64(122, {1}) == refused(EPERM));
}

TEST_CASE("native is the program of this machine's architecture") {
#if defined(__x86_64__)
  constexpr auto here = filter_architecture::x86_64;
#else
  constexpr auto here = filter_architecture::aarch64;
#endif
  CHECK(*build_base_filter(filter_architecture::native, true) == *build_base_filter(here, true));
}

TEST_CASE("the interpreter refuses what the kernel would refuse") {
  const auto refuses = [](std::vector<sock_filter> code) {
    CHECK_THROWS_AS(bpf_program{std::move(code)}, std::invalid_argument);
  };
  const sock_filter allow = stmt(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  CHECK_NOTHROW(bpf_program({allow}));
  refuses({});
  refuses({stmt(BPF_LD | BPF_W | BPF_ABS, 0)});                     // runs off the end
  refuses({stmt(BPF_LD | BPF_W | BPF_ABS, 64), allow});             // beyond seccomp_data
  refuses({stmt(BPF_LD | BPF_W | BPF_ABS, 2), allow});              // not aligned
  refuses({stmt(BPF_LD | BPF_H | BPF_ABS, 0), allow});              // half words
  refuses({branch_if(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0), allow});  // jumps off the end
  refuses({branch_if(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1), allow});
  refuses({stmt(BPF_JMP | BPF_JA, 1), allow});
  refuses({stmt(BPF_ALU | BPF_DIV | BPF_K, 0), allow});
  refuses(std::vector<sock_filter>(BPF_MAXINSNS + 1, allow));
  CHECK_THROWS_AS(bpf_program::from_bytes("seven b"), std::invalid_argument);
}

TEST_CASE("the interpreter loads, jumps and computes as the kernel does") {
  const auto result = [](std::vector<sock_filter> code, const seccomp_data& data = {}) {
    return bpf_program(std::move(code)).run(data);
  };
  const auto ret_a = stmt(BPF_RET | BPF_A, 0);
  seccomp_data data{7, AUDIT_ARCH_X86_64, 0, {0x1111111122222222, 0, 0, 0, 0, 0x3333333344444444}};
  CHECK(result({stmt(BPF_LD | BPF_W | BPF_ABS, 0), ret_a}, data).action == 7);
  CHECK_FALSE(result({stmt(BPF_LD | BPF_W | BPF_ABS, 4), ret_a}, data).read_arguments);
  CHECK(result({stmt(BPF_LD | BPF_W | BPF_ABS, 16), ret_a}, data).action == 0x22222222);
  CHECK(result({stmt(BPF_LD | BPF_W | BPF_ABS, 20), ret_a}, data).action == 0x11111111);
  CHECK(result({stmt(BPF_LD | BPF_W | BPF_ABS, 60), ret_a}, data).action == 0x33333333);
  CHECK(result({stmt(BPF_LD | BPF_W | BPF_ABS, 16), ret_a}, data).read_arguments);
  const auto branch = [&](std::uint16_t operation, std::uint32_t a, std::uint32_t k) {
    return result({stmt(BPF_LD | BPF_IMM, a), branch_if(BPF_JMP | operation, k, 1, 0),
                   stmt(BPF_RET | BPF_K, 0), stmt(BPF_RET | BPF_K, 1)})
        .action;
  };
  CHECK(branch(BPF_JEQ, 5, 5) == 1);
  CHECK(branch(BPF_JEQ, 5, 6) == 0);
  CHECK(branch(BPF_JGT, 0x80000000, 1) == 1);  // unsigned
  CHECK(branch(BPF_JGT, 5, 5) == 0);
  CHECK(branch(BPF_JGE, 5, 5) == 1);
  CHECK(branch(BPF_JSET, 6, 4) == 1);
  CHECK(branch(BPF_JSET, 6, 9) == 0);
  CHECK(result({stmt(BPF_LD | BPF_IMM, 0xff), stmt(BPF_ALU | BPF_AND | BPF_K, 0xf),
                stmt(BPF_MISC | BPF_TAX, 0), stmt(BPF_ALU | BPF_ADD | BPF_X, 0), stmt(BPF_ST, 3),
                stmt(BPF_LD | BPF_IMM, 0), stmt(BPF_LD | BPF_MEM, 3), ret_a})
            .action == 30);
}
