#include "storm.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "script.hpp"
#include "table.hpp"

namespace attempt {
namespace {

// 0 or the errno.
int create(const char* name) {
  const int made = ::open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (made < 0) return errno;
  ::close(made);
  return 0;
}

}  // namespace

int storm(unsigned long times) {
  for (unsigned long i = 0; i < times; ++i) {
    if (create("ordinary") != 0 || ::unlink("ordinary") != 0) return usage_error;
    if (create(".env") != EACCES) return usage_error;
  }
  std::printf("done\n");
  std::fflush(stdout);
  return wait_until_prepared() ? 0 : usage_error;
}

void storm_until_failure() {
  for (unsigned long i = 0;; ++i) {
    int failure = create("ordinary");
    if (failure == 0 && ::unlink("ordinary") != 0) failure = errno;
    if (const int refusal = create(".env"); failure == 0 && refusal != EACCES)
      failure = refusal == 0 ? usage_error : refusal;
    if (failure != 0) {
      const int forbidden = create(".env"), other = create("another");
      std::printf("failed %d then %d %d\n", failure, forbidden, other);
      std::fflush(stdout);
      for (;;)
        ::pause();
    }
    if (i == 0) {
      std::printf("begun\n");
      std::fflush(stdout);
    }
  }
}

}  // namespace attempt
