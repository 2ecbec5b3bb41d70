#include "terminal.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ccbox::init {
namespace {

// Opening anything else could wait for ever, or have an effect: a command may own /dev.
unique_fd open_multiplexer(const char* path) {
  unique_fd fd(open(path, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  struct stat file;
  if (!fd || fstat(fd.get(), &file) != 0) return {};
  if (S_ISCHR(file.st_mode) && file.st_rdev == makedev(5, 2)) return fd;
  errno = ENODEV;
  return {};
}

}  // namespace

int open_terminal(std::uint32_t rows, std::uint32_t cols, terminal& into) {
  // devpts' own node cannot be replaced from inside; where it has mode 000 the one in /dev is meant to be
  // used.
  into.master = open_multiplexer("/dev/pts/ptmx");
  if (!into.master) into.master = open_multiplexer("/dev/ptmx");
  if (!into.master) return errno;
  const int master = into.master.get();
  int unlocked = 0;
  if (ioctl(master, TIOCSPTLCK, &unlocked) != 0) return errno;
  into.slave.reset(ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!into.slave) return errno;
  const winsize size{static_cast<unsigned short>(rows), static_cast<unsigned short>(cols), 0, 0};
  if (ioctl(master, TIOCSWINSZ, &size) != 0) return errno;
  return fcntl(master, F_SETFL, O_RDWR) == 0 ? 0 : errno;
}

pid_t foreground_group(pid_t leader) {
  char path[32], text[512];
  std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(leader));
  const unique_fd file(open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t size = file ? read(file.get(), text, sizeof text - 1) : -1;
  if (size <= 0) return 0;
  text[size] = '\0';
  // pid (name) state ppid pgrp session tty_nr tpgid ...; the name is the command's to choose.
  const char* const name_end = std::strrchr(text, ')');
  int group = 0;
  if (!name_end || std::sscanf(name_end + 1, " %*c %*d %*d %*d %*d %d", &group) != 1) return 0;
  return group > 1 ? group : 0;
}

}  // namespace ccbox::init
