#include "failure.hpp"

#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>

namespace ccbox::init {

void fail(const char* what, int error_number) {
  const char* reason = error_number == 0 ? nullptr : strerrordesc_np(error_number);
  const auto part = [](const char* text) { return iovec{const_cast<char*>(text), std::strlen(text)}; };
  const iovec line[] = {part("ccbox-init: "), part(what), part(reason ? ": " : ""),
                        part(reason ? reason : ""), part("\n")};
  // Nobody may be reading: a full pipe must not keep us from ending.
  pollfd ready{STDERR_FILENO, POLLOUT, 0};
  if (poll(&ready, 1, 0) == 1) (void)!writev(STDERR_FILENO, line, 5);
  _exit(1);
}

}  // namespace ccbox::init
