#include "notify_filter.hpp"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cerrno>
#include <cstddef>
#include <vector>

namespace ccbox::bubblewrap {

namespace {

constexpr int none = -1;

struct numbers {
  int x86_64, aarch64;
  int on(filter_machine machine) const { return machine == filter_machine::x86_64 ? x86_64 : aarch64; }
};

// By arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
constexpr numbers openat{257, 56}, open_{2, none};
constexpr numbers handed_over[] = {
    {82, none},   // rename
    {83, none},   // mkdir
    {84, none},   // rmdir
    {85, none},   // creat
    {86, none},   // link
    {87, none},   // unlink
    {88, none},   // symlink
    {133, none},  // mknod
    {76, 45},     // truncate
    {95, 166},    // umask: new files get it
    {258, 34},    // mkdirat
    {259, 33},    // mknodat
    {263, 35},    // unlinkat
    {264, 38},    // renameat
    {265, 37},    // linkat
    {266, 36},    // symlinkat
    {316, 276},   // renameat2
    {437, 437},   // openat2: its flags are in memory
};
// A domain of the caller's own would not bind the broker that acts for it: whoever wants one must know that
// there is none.
constexpr numbers not_supported[] = {
    {444, 444},  // landlock_create_ruleset
    {445, 445},  // landlock_add_rule
    {446, 446},  // landlock_restrict_self
};

// Not O_TMPFILE: that includes O_DIRECTORY, and would stop every opendir.
constexpr std::uint32_t writing = O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);

class program {
 public:
  void load(std::size_t offset) {
    add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)));
  }
  // Goes on behind the next `skipped` instructions unless the test holds.
  void unless(std::uint16_t test, std::uint32_t value, std::uint8_t skipped) {
    add(BPF_JUMP(static_cast<std::uint16_t>(BPF_JMP | BPF_K | test), value, 0, skipped));
  }
  // Goes on behind the next `skipped` instructions when the test holds.
  void when(std::uint16_t test, std::uint32_t value, std::uint8_t skipped) {
    add(BPF_JUMP(static_cast<std::uint16_t>(BPF_JMP | BPF_K | test), value, skipped, 0));
  }
  void answer(std::uint32_t action) { add(BPF_STMT(BPF_RET | BPF_K, action)); }
  std::string bytes() const {
    return std::string(reinterpret_cast<const char*>(code_.data()), code_.size() * sizeof(sock_filter));
  }

 private:
  void add(sock_filter instruction) { code_.push_back(instruction); }
  std::vector<sock_filter> code_;
};

void add_open(program& code, int number, std::size_t flags_argument) {
  code.unless(BPF_JEQ, static_cast<std::uint32_t>(number), 6);
  code.load(offsetof(seccomp_data, args) +
            8 * flags_argument);  // the low half: both machines are little-endian
  code.unless(BPF_JSET, O_PATH, 1);
  code.answer(SECCOMP_RET_ALLOW);
  code.unless(BPF_JSET, writing, 1);
  code.answer(SECCOMP_RET_USER_NOTIF);
  code.answer(SECCOMP_RET_ALLOW);
}

void add_whole(program& code, int number, std::uint32_t action) {
  code.unless(BPF_JEQ, static_cast<std::uint32_t>(number), 1);
  code.answer(action);
}

}  // namespace

std::string build_notify_filter(filter_machine machine) {
  program code;
  code.load(offsetof(seccomp_data, arch));
  // As the base filter answers who calls in another machine's way.
  code.when(BPF_JEQ, machine == filter_machine::x86_64 ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64, 1);
  code.answer(SECCOMP_RET_KILL_PROCESS);
  code.load(offsetof(seccomp_data, nr));
  add_open(code, openat.on(machine), 2);
  if (open_.on(machine) != none) add_open(code, open_.on(machine), 1);
  for (const auto& call : handed_over)
    if (call.on(machine) != none) add_whole(code, call.on(machine), SECCOMP_RET_USER_NOTIF);
  for (const auto& call : not_supported)
    add_whole(code, call.on(machine), SECCOMP_RET_ERRNO | EOPNOTSUPP);
  code.answer(SECCOMP_RET_ALLOW);
  return code.bytes();
}

}  // namespace ccbox::bubblewrap
