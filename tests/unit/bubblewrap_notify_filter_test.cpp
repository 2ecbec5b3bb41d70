#include "plugins/bubblewrap/notify_filter.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>

#include <array>
#include <cerrno>
#include <set>

#include "support/bpf_interpreter.hpp"

using namespace ccbox::bubblewrap;
using ccbox::test::bpf_program;

namespace {

constexpr std::uint32_t allowed = SECCOMP_RET_ALLOW, handed_over = SECCOMP_RET_USER_NOTIF,
                        killed = SECCOMP_RET_KILL_PROCESS, unsupported = SECCOMP_RET_ERRNO | EOPNOTSUPP;
constexpr std::uint32_t all_numbers = 1024, x32_bit = 0x40000000;
constexpr std::uint32_t without_directory = O_TMPFILE & ~O_DIRECTORY;

using arguments = std::array<std::uint64_t, 6>;

struct machine {
  filter_machine which;
  std::uint32_t arch;
  // Written down from the kernel's own tables, not from the filter.
  std::set<std::uint32_t> handed_over;
  std::uint32_t openat;
  int open;
};

const machine x86_64{
    filter_machine::x86_64,
    AUDIT_ARCH_X86_64,
    // truncate rename mkdir rmdir creat link unlink symlink umask mknod, then the *at ones, openat2
    {76, 82, 83, 84, 85, 86, 87, 88, 95, 133, 258, 259, 263, 264, 265, 266, 316, 437},
    257,
    2};
const machine aarch64{filter_machine::aarch64,
                      AUDIT_ARCH_AARCH64,
                      // mknodat mkdirat unlinkat symlinkat linkat renameat truncate umask renameat2 openat2
                      {33, 34, 35, 36, 37, 38, 45, 166, 276, 437},
                      56,
                      -1};

std::uint32_t verdict(const bpf_program& filter, std::uint32_t arch, std::uint32_t number,
                      const arguments& args = {}) {
  seccomp_data data{};
  data.nr = static_cast<int>(number);
  data.arch = arch;
  std::copy(args.begin(), args.end(), data.args);
  return filter.run(data).action;
}

bpf_program program(const machine& m) {
  return bpf_program::from_bytes(build_notify_filter(m.which));
}

bool makes_or_writes(std::uint32_t flags) {
  if (flags & O_PATH) return false;
  return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC | without_directory)) != 0;
}

}  // namespace

TEST_CASE("the notify filter hands over what makes or changes names and nothing else, whatever the number") {
  for (const auto* m : {&x86_64, &aarch64}) {
    const auto filter = program(*m);
    for (std::uint32_t number = 0; number < all_numbers; ++number) {
      CAPTURE(number);
      const bool landlock = number >= 444 && number <= 446;
      const auto expected = m->handed_over.contains(number) ? handed_over : landlock ? unsupported : allowed;
      CHECK(verdict(filter, m->arch, number) == expected);
    }
  }
}

TEST_CASE("the notify filter answers without looking at arguments, but for those of open and openat") {
  for (const auto* m : {&x86_64, &aarch64}) {
    const auto filter = program(*m);
    for (std::uint32_t number = 0; number < all_numbers; ++number) {
      seccomp_data data{};
      data.nr = static_cast<int>(number);
      data.arch = m->arch;
      CAPTURE(number);
      CHECK(filter.run(data).read_arguments == (number == m->openat || static_cast<int>(number) == m->open));
    }
  }
}

TEST_CASE("every set of flags of open and openat is judged by what it can do, and their high half is not") {
  for (const auto* m : {&x86_64, &aarch64}) {
    const auto filter = program(*m);
    const std::uint32_t known[] = {O_WRONLY,    O_RDWR,     O_CREAT,    O_EXCL,
                                   O_TRUNC,     O_APPEND,   O_PATH,     O_CLOEXEC,
                                   O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, without_directory};
    for (std::uint32_t chosen = 0; chosen < (1u << std::size(known)); ++chosen) {
      std::uint32_t flags = 0;
      for (std::size_t i = 0; i < std::size(known); ++i)
        if ((chosen >> i) & 1) flags |= known[i];
      const auto expected = makes_or_writes(flags) ? handed_over : allowed;
      const std::uint64_t high = 0xdeadbeef00000000;
      CAPTURE(flags);
      REQUIRE(verdict(filter, m->arch, m->openat, {0, 0, flags}) == expected);
      REQUIRE(verdict(filter, m->arch, m->openat, {0, 0, high | flags}) == expected);
      if (m->open < 0) continue;
      REQUIRE(verdict(filter, m->arch, static_cast<std::uint32_t>(m->open), {0, flags, O_CREAT}) == expected);
    }
  }
}

TEST_CASE("opendir is not stopped, though O_TMPFILE includes its flag") {
  const auto filter = program(x86_64);
  CHECK(verdict(filter, AUDIT_ARCH_X86_64, 257, {0, 0, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK}) ==
        allowed);
  CHECK(verdict(filter, AUDIT_ARCH_X86_64, 257, {0, 0, O_TMPFILE | O_WRONLY}) == handed_over);
}

TEST_CASE("calls in another machine's way end the process, whatever the number") {
  for (const auto* m : {&x86_64, &aarch64}) {
    const auto filter = program(*m);
    for (const std::uint32_t arch : {std::uint32_t{AUDIT_ARCH_I386}, std::uint32_t{AUDIT_ARCH_X86_64},
                                     std::uint32_t{AUDIT_ARCH_ARM}, std::uint32_t{AUDIT_ARCH_AARCH64}})
      for (std::uint32_t number = 0; arch != m->arch && number < all_numbers; ++number)
        CHECK(verdict(filter, arch, number) == killed);
  }
}

TEST_CASE("no number of x32 is handed over: the base filter refuses them, and below it the floor lies") {
  const auto filter = program(x86_64);
  for (std::uint32_t number = 0; number < all_numbers; ++number)
    CHECK(verdict(filter, AUDIT_ARCH_X86_64, x32_bit | number) == allowed);
}
