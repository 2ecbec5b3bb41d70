#include "confinement.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "failure.hpp"

namespace ccbox::init {
namespace {

using capability_set = std::uint64_t;

// What a root caller needs to work on files of others, as it does outside.
constexpr capability_set file_capabilities =
    1ull << CAP_CHOWN | 1ull << CAP_DAC_OVERRIDE | 1ull << CAP_FOWNER | 1ull << CAP_FSETID;

struct capabilities {
  capability_set effective = 0, permitted = 0, inheritable = 0;
};

capabilities current_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) fail("capget", errno);
  const auto joined = [](std::uint32_t low, std::uint32_t high) { return capability_set{high} << 32 | low; };
  return {joined(data[0].effective, data[1].effective), joined(data[0].permitted, data[1].permitted),
          joined(data[0].inheritable, data[1].inheritable)};
}

capability_set allowed_capabilities() {
  return geteuid() == 0 ? file_capabilities : 0;
}

}  // namespace

void close_all_but(const inherited_descriptors& given) {
  // A launcher may have closed its standard descriptors: nothing of ours may land on 0, 1 or 2.
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  while (null >= 0 && null < STDERR_FILENO)
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) fail("open '/dev/null'", errno);
  if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0) fail("dup2", errno);
  int kept[] = {given.channel, given.floor, given.broker};
  std::sort(std::begin(kept), std::end(kept));
  unsigned first = STDERR_FILENO + 1;
  for (const int number : kept) {
    if (number < 0) continue;
    const auto stays = static_cast<unsigned>(number);
    if (stays > first && close_range(first, stays - 1, 0) != 0) fail("close_range", errno);
    if (fcntl(number, F_SETFD, FD_CLOEXEC) != 0)
      fail(number == given.channel ? "the channel" : "an inherited descriptor", errno);
    first = stays + 1;
  }
  if (close_range(first, ~0u, 0) != 0) fail("close_range", errno);
}

void hide_from_same_user() {
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) fail("PR_SET_DUMPABLE", errno);
}

void rename_command_line(int argc, char** argv) {
  // The words lie one after the other; what we want is written over them as far as it fits.
  char* const begin = argv[0];
  char* const end = argv[argc - 1] + std::strlen(argv[argc - 1]);
  std::string words("ccbox-init");
  for (int i = 1; i < argc; ++i)
    words.append(1, '\0').append(argv[i]);
  if (words.size() <= static_cast<std::size_t>(end - begin)) {
    std::memset(begin, 0, static_cast<std::size_t>(end - begin));
    std::memcpy(begin, words.data(), words.size());
  }
  prctl(PR_SET_NAME, "ccbox-init", 0, 0, 0);
}

unique_fd block_signals() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number <= SIGRTMAX; ++number)
    sigaction(number, &standard, nullptr);  // EINVAL: KILL, STOP
  sigset_t all, child_ended;
  sigfillset(&all);
  sigemptyset(&child_ended);
  sigaddset(&child_ended, SIGCHLD);
  if (sigprocmask(SIG_SETMASK, &all, nullptr) != 0) fail("sigprocmask", errno);
  unique_fd signals(signalfd(-1, &child_ended, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals) fail("signalfd", errno);
  return signals;
}

void require_first_process() {
  if (getpid() != 1)
    fail("not the first process of its pid namespace: the backend's plan does not isolate processes");
}

void forbid_new_privileges() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("PR_SET_NO_NEW_PRIVS", errno);
}

void drop_capabilities() {
  const capability_set kept = current_capabilities().permitted & allowed_capabilities();
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) fail("PR_CAP_AMBIENT", errno);
  for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability) {
    if (kept >> capability & 1) continue;
    // Without CAP_SETPCAP the bounding set stays; with no_new_privs nothing can be gained from it.
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 && errno != EPERM) fail("PR_CAPBSET_DROP", errno);
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  data[0].effective = data[0].permitted = static_cast<std::uint32_t>(kept);
  data[1].effective = data[1].permitted = static_cast<std::uint32_t>(kept >> 32);
  if (syscall(SYS_capset, &header, data) != 0) fail("capset", errno);
}

void install_filter(const std::string& instructions) {
  if (instructions.empty()) fail("no system-call filter was sent for this enclosure");
  sock_fprog program{static_cast<unsigned short>(instructions.size() / sizeof(sock_filter)),
                     reinterpret_cast<sock_filter*>(const_cast<char*>(instructions.data()))};
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
    fail("install the system-call filter", errno);
}

void verify_confinement() {
  if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0) fail("still dumpable");
  if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) fail("new privileges are still possible");
  if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != SECCOMP_MODE_FILTER) fail("no system-call filter is in force");
  const auto left = current_capabilities();
  if ((left.effective | left.permitted | left.inheritable) & ~allowed_capabilities())
    fail("capabilities are left that a command must not have");
}

void die_with_launcher() {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) fail("PR_SET_PDEATHSIG", errno);
}

void adopt_orphans() {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) fail("PR_SET_CHILD_SUBREAPER", errno);
}

}  // namespace ccbox::init
