#include "fifo_stream.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <chrono>

namespace ccbox {

namespace asio = boost::asio;

namespace {

constexpr std::size_t most_bytes = 1 << 20;
constexpr std::chrono::hours long_enough{24};

}  // namespace

bool is_named_fifo(int fd) {
  struct stat status {};
  struct statfs where {};
  return ::fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode) && ::fstatfs(fd, &where) == 0 &&
         where.f_type != PIPEFS_MAGIC;
}

fifo_stream::fifo_stream(const asio::any_io_executor& executor, int fd, shared_watch::direction what)
    : fd_(fd), watch_(executor, fd, what) {
  if (what == shared_watch::direction::read) nowhere_.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
}

asio::awaitable<bool> fifo_stream::ready() {
  while (!stopped_ && !watch_.is_ready())
    co_await watch_.wait(long_enough);
  co_return !stopped_;
}

void fifo_stream::stop() {
  stopped_ = true;
  watch_.cancel();
}

ssize_t fifo_stream::copy_to(int pipe) const {
  return ::tee(fd_, pipe, most_bytes, SPLICE_F_NONBLOCK);
}

void fifo_stream::drop(std::size_t bytes) const {
  while (bytes > 0) {
    const ssize_t n = ::splice(fd_, nullptr, nowhere_.get(), nullptr, bytes, SPLICE_F_NONBLOCK);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // somebody else has read it
    bytes -= static_cast<std::size_t>(n);
  }
}

ssize_t fifo_stream::move_from(int pipe) const {
  return ::splice(pipe, nullptr, fd_, nullptr, most_bytes, SPLICE_F_NONBLOCK);
}

}  // namespace ccbox
