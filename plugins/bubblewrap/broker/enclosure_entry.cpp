#include "broker/enclosure_entry.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace ccbox::bubblewrap {

namespace {

constexpr std::uint64_t bit(int capability) {
  return std::uint64_t{1} << capability;
}

bool same_namespace(int fd, const char* path) {
  struct stat theirs, ours;
  return ::fstat(fd, &theirs) == 0 && ::stat(path, &ours) == 0 && theirs.st_ino == ours.st_ino &&
         theirs.st_dev == ours.st_dev;
}

}  // namespace

handed_over receive_listener(int socket) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = 0;
  do
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  handed_over both;
  const cmsghdr* header = got == 1 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (!header || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(2 * sizeof(int)))
    return both;
  int numbers[2];
  std::memcpy(numbers, CMSG_DATA(header), sizeof numbers);
  both.listener = descriptor(numbers[0]);
  both.mount_namespace = descriptor(numbers[1]);
  return both;
}

const char* enter_namespaces(int mount_namespace) {
  const descriptor owner(::ioctl(mount_namespace, NS_GET_USERNS));
  if (!owner) return "find the user namespace of the enclosure";
  // A root caller's launcher is in it from the start.
  if (!same_namespace(owner.get(), "/proc/self/ns/user") && ::setns(owner.get(), CLONE_NEWUSER) != 0)
    return "enter the enclosure's user namespace";
  if (::setns(mount_namespace, CLONE_NEWNS) != 0) return "enter the enclosure's mount namespace";
  return nullptr;
}

const char* confine() {
  std::uint64_t kept = bit(CAP_SYS_PTRACE);
  if (::geteuid() == 0) kept |= bit(CAP_CHOWN) | bit(CAP_DAC_OVERRIDE) | bit(CAP_FOWNER) | bit(CAP_FSETID);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return "set no_new_privs";
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) return "clear ambient capabilities";
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  data[0].effective = data[0].permitted = static_cast<std::uint32_t>(kept);
  data[1].effective = data[1].permitted = static_cast<std::uint32_t>(kept >> 32);
  if (::syscall(SYS_capset, &header, data) != 0) return "drop capabilities";
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return "become undumpable";
  return nullptr;
}

}  // namespace ccbox::bubblewrap
