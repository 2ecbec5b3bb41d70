#include "floor.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "failure.hpp"

// Newer than the headers that some systems have.
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

namespace ccbox::init {
namespace {

constexpr std::uint64_t for_files = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE;
constexpr std::uint64_t handled = for_files | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                                  LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |
                                  LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
                                  LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                                  LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER;
constexpr int abi_with_truncate = 3;
constexpr char trial_name[] = ".ccbox-floor-trial";

unique_fd new_ruleset() {
  const long abi = syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (abi < 0) fail("Landlock", errno);
  if (abi < abi_with_truncate)
    fail("this kernel's Landlock does not know truncation (Linux 6.2 and later do)");
  landlock_ruleset_attr attributes{};
  attributes.handled_access_fs = handled;
  // Its first member alone: a kernel that knows no further ones takes it too.
  unique_fd ruleset(static_cast<int>(
      syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes.handled_access_fs, 0)));
  if (!ruleset) fail("landlock_create_ruleset", errno);
  return ruleset;
}

void open_up(int ruleset, const std::string& path) {
  const unique_fd at(open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!at && errno == ENOENT) return;
  if (!at) fail("the floor: a path that stays open", errno);
  struct stat status;
  if (fstat(at.get(), &status) != 0) fail("fstat", errno);
  landlock_path_beneath_attr rule{};
  rule.allowed_access = S_ISDIR(status.st_mode) ? handled : for_files;
  rule.parent_fd = at.get();
  if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
    fail("landlock_add_rule", errno);
}

// A floor with a hole is worse than none: whoever relies on it does not look any further.
void try_floor(const std::string& directory) {
  const unique_fd at(open(directory.c_str(), O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC));
  if (!at) fail("the floor: a guarded directory", errno);
  const unique_fd made(
      openat(at.get(), trial_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (made) {
    unlinkat(at.get(), trial_name, 0);
    fail("the floor does not hold: a file could be created in a guarded directory");
  }
  if (errno != EACCES) fail("the floor: the trial in a guarded directory", errno);
}

void send_both(int socket, int listener, int mount_namespace) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(2 * sizeof(int));
  const int both[2] = {listener, mount_namespace};
  std::memcpy(CMSG_DATA(header), both, sizeof both);
  ssize_t sent = 0;
  do
    sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  if (sent != 1) fail("hand the listener to the broker", errno);
}

}  // namespace

floor_orders read_floor_orders(unique_fd file) {
  struct stat status;
  if (fstat(file.get(), &status) != 0) fail("the floor's orders", errno);
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  if (pread(file.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    fail("read the floor's orders", errno);
  auto orders = decode_floor(bytes);
  if (!orders || orders->filter.empty() || orders->filter.size() % sizeof(sock_filter) != 0)
    fail("the floor's orders make no sense");
  return std::move(*orders);
}

void lay_floor(const floor_orders& orders) {
  const auto ruleset = new_ruleset();
  for (const auto& path : orders.open)
    open_up(ruleset.get(), path);
  if (syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0) fail("landlock_restrict_self", errno);
  for (const auto& directory : orders.guarded)
    try_floor(directory);
}

void hand_over_listener(const floor_orders& orders, unique_fd broker) {
  const unique_fd mount_namespace(open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
  if (!mount_namespace) fail("open '/proc/self/ns/mnt'", errno);
  const sock_fprog program{static_cast<unsigned short>(orders.filter.size() / sizeof(sock_filter)),
                           reinterpret_cast<sock_filter*>(const_cast<char*>(orders.filter.data()))};
  // Killable: a signal that arrives while the broker acts must not restart the call, which would then be done
  // twice.
  const unique_fd listener(static_cast<int>(
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
              SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &program)));
  if (!listener && errno == EBUSY)
    fail(
        "a system-call listener is installed already (ccbox inside another sandbox?), and a process has only "
        "one");
  if (!listener) fail("install the listener's filter", errno);
  send_both(broker.get(), listener.get(), mount_namespace.get());
  char ready = 0;
  ssize_t got = 0;
  do
    got = recv(broker.get(), &ready, 1, 0);
  while (got < 0 && errno == EINTR);
  if (got != 1) fail("the broker ended before it was ready");
}

void try_broker(const floor_orders& orders, const std::string& ordinary, const std::string& forbidden) {
  constexpr int anew = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  for (const auto& directory : orders.guarded) {
    const unique_fd at(open(directory.c_str(), O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC));
    if (!at) fail("the trial: a guarded directory", errno);
    const unique_fd made(openat(at.get(), ordinary.c_str(), anew, 0600));
    if (!made) fail("the trial: an ordinary name", errno);
    if (write(made.get(), "x", 1) != 1) fail("the trial: writing under an ordinary name", errno);
    if (unlinkat(at.get(), ordinary.c_str(), 0) != 0) fail("the trial: removing an ordinary name", errno);
    const unique_fd refused(openat(at.get(), forbidden.c_str(), anew, 0600));
    if (refused) fail("the trial: a forbidden name could be made");
    if (errno != EACCES) fail("the trial: a forbidden name", errno);
  }
}

}  // namespace ccbox::init
