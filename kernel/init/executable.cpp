#include "executable.hpp"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

#include "../unique_fd.hpp"
#include "failure.hpp"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

namespace ccbox::init {
namespace {

constexpr int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

bool unwritable(int fd) {
  const int present = fcntl(fd, F_GET_SEALS);
  if (present >= 0 && (present & seals) == seals) return true;
  struct statvfs mount;
  if (fstatvfs(fd, &mount) == 0 && (mount.f_flag & ST_RDONLY)) return true;
  // Uid 0 may hold CAP_DAC_OVERRIDE or CAP_FOWNER, now or in what it starts: permissions then mean nothing.
  struct stat file;
  return geteuid() != 0 && fstat(fd, &file) == 0 && file.st_uid != geteuid() &&
         faccessat(AT_FDCWD, "/proc/self/exe", W_OK, AT_EACCESS) != 0;
}

unique_fd sealed_copy(int source) {
  unique_fd copy(memfd_create("ccbox-init", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC));
  if (!copy && errno == EINVAL)  // before Linux 6.3
    copy.reset(memfd_create("ccbox-init", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!copy) fail("memfd_create", errno);
  for (;;) {
    const ssize_t sent = sendfile(copy.get(), source, nullptr, 1 << 24);
    if (sent == 0) break;
    if (sent < 0) fail("copy of the executable", errno);
  }
  if (fchmod(copy.get(), 0555) != 0 || fcntl(copy.get(), F_ADD_SEALS, seals) != 0)
    fail("seal the copy of the executable", errno);
  return copy;
}

}  // namespace

void ensure_sealed_executable(char** argv) {
  const unique_fd self(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  if (!self) fail("open '/proc/self/exe'", errno);
  if (unwritable(self.get())) return;

  const unique_fd copy = sealed_copy(self.get());
  char* const env[] = {nullptr};
  fexecve(copy.get(), argv, env);
  fail("execute the sealed copy", errno);
}

}  // namespace ccbox::init
