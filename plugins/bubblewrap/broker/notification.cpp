#include "broker/notification.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif
#ifndef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

namespace ccbox::bubblewrap {

listener::listener(descriptor fd) : fd_(std::move(fd)) {
  // Since Linux 6.6; caller and broker take turns, so half of the time goes into waking up.
  ::ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
}

bool listener::receive(seccomp_notif& call) const {
  std::memset(&call, 0, sizeof call);
  if (::ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_RECV, &call) == 0) return true;
  // Nobody is left who could call: waiting for it would come back at once, for ever.
  pollfd left{fd_.get(), POLLIN, 0};
  constexpr timespec at_once{};
  if (errno == ENOENT && ::ppoll(&left, 1, &at_once, nullptr) == 1 && (left.revents & POLLHUP)) {
    sigset_t none;
    sigemptyset(&none);
    ::sigsuspend(&none);
  }
  return false;
}

void listener::answer(seccomp_notif_resp response) const {
  ::ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_SEND, &response);
}

void listener::let_the_kernel_do(std::uint64_t id) const {
  answer({id, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE});
}

void listener::return_value(std::uint64_t id, std::int64_t value) const {
  answer({id, value, 0, 0});
}

void listener::return_error(std::uint64_t id, int error_number) const {
  answer({id, 0, -error_number, 0});
}

int listener::put_descriptor(std::uint64_t id, int fd, bool close_on_exec) const {
  seccomp_notif_addfd placed{};
  placed.id = id;
  placed.srcfd = static_cast<__u32>(fd);
  placed.newfd_flags = close_on_exec ? O_CLOEXEC : 0;
  return ::ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_ADDFD, &placed);
}

bool listener::still_waits(std::uint64_t id) const {
  return ::ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

}  // namespace ccbox::bubblewrap
