#include "descriptor_relay.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <chrono>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "fifo_stream.hpp"
#include "log.hpp"
#include "terminal_relay.hpp"

namespace ccbox {

namespace asio = boost::asio;
using asio_error = boost::system::error_code;
using stream = asio::posix::stream_descriptor;

namespace {

constexpr std::size_t chunk_bytes = 65536;  // what a pipe holds
constexpr std::chrono::milliseconds background_interval{200};
constexpr std::chrono::milliseconds large_pipe_interval{20};

bool is_null_device(const struct stat& status) {
  return S_ISCHR(status.st_mode) && major(status.st_rdev) == 1 && minor(status.st_rdev) == 3;
}

void set_nonblocking(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

// False if it will never be ready. A device that cannot be waited for always is.
asio::awaitable<bool> wait_until(stream& s, stream::wait_type what) {
  asio_error ec;
  co_await s.async_wait(what, asio::redirect_error(asio::use_awaitable, ec));
  co_return !ec || ec == asio::error::operation_not_supported;
}

}  // namespace

hand_over how_to_hand_over(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return hand_over::as_it_is;
  if (is_null_device(status)) return hand_over::null;
  if ((::fcntl(fd, F_GETFL) & O_PATH) != 0) return hand_over::refused;
  switch (status.st_mode & S_IFMT) {
    case S_IFREG:
    case S_IFBLK:
    case S_IFCHR:
      return hand_over::relayed;
    case S_IFIFO:
      return is_named_fifo(fd) ? hand_over::relayed : hand_over::as_it_is;
    case S_IFSOCK:
    case S_IFDIR:
      return hand_over::as_it_is;
    default:
      return hand_over::refused;
  }
}

bool is_same_file(int fd, int other) {
  struct stat a {
  }, b{};
  return ::fstat(fd, &a) == 0 && ::fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

struct descriptor_relay::impl : std::enable_shared_from_this<impl> {
  explicit impl(asio::any_io_executor e) : pipe(e), device(e), idle(e) {}

  void fail(const std::string& action) {
    constexpr std::array names{" standard input", " standard output", " standard error"};
    if (!failure)
      failure = system_error(action + names[static_cast<std::size_t>(number)], "", errno,
                             "what went through it is incomplete");
    if (at_limit)
      failure->hint = "what went through it is incomplete: raise the limit of " +
                      std::to_string(*most_bytes) + " bytes (--file-size)";
  }

  bool may_read() const {
    if (!is_terminal) return true;
    return ::tcgetpgrp(source.get()) == ::getpgrp();
  }

  // As read(2), from the file or the device. EAGAIN: not now.
  asio::awaitable<ssize_t> read_some(std::string& buffer) {
    if (position >= 0) co_return ::pread(source.get(), buffer.data(), buffer.size(), position + passed);
    if (!may_read()) {
      // No signal tells a process that it was brought to the foreground.
      idle.expires_after(background_interval);
      asio_error ignored;
      co_await idle.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
      errno = EAGAIN;
      co_return -1;
    }
    if (!co_await wait_until(device, stream::wait_read)) co_return 0;
    if (!may_read()) {
      errno = EAGAIN;
      co_return -1;
    }
    co_return ::read(device.native_handle(), buffer.data(), buffer.size());
  }

  static asio::awaitable<void> pump_in(std::shared_ptr<impl> self) {
    std::string buffer(chunk_bytes, '\0');
    while (!self->stopped) {
      const ssize_t n = co_await self->read_some(buffer);
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      // Not open for reading: whoever reads finds nothing.
      if (n < 0 && errno != EBADF) self->fail("read");
      if (n <= 0) break;
      std::string_view rest(buffer.data(), static_cast<std::size_t>(n));
      while (!rest.empty() && !self->stopped) {
        if (!co_await wait_until(self->pipe, stream::wait_write)) co_return;
        const ssize_t written = ::write(self->pipe.native_handle(), rest.data(), rest.size());
        if (written < 0 && errno != EINTR && errno != EAGAIN) co_return;
        if (written <= 0) continue;
        rest.remove_prefix(static_cast<std::size_t>(written));
        self->passed += written;
      }
    }
    asio_error ignored;
    self->pipe.close(ignored);
  }

  // The pipe holds one copied piece at a time: writable again, it was read, unless the command has made the
  // pipe larger.
  static asio::awaitable<void> pump_fifo_in(std::shared_ptr<impl> self) {
    while (!self->stopped && co_await self->fifo->ready()) {
      const ssize_t n = self->fifo->copy_to(self->pipe.native_handle());
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (n < 0 && errno == EPIPE) co_return;  // it does not read any more
      if (n < 0) self->fail("read");
      if (n <= 0) break;
      self->copied = static_cast<std::size_t>(n);
      if (!co_await wait_until(self->pipe, stream::wait_write)) co_return;
      while (!self->stopped && self->unread() > 0) {
        asio_error ignored;
        self->idle.expires_after(large_pipe_interval);
        co_await self->idle.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
      }
      if (self->stopped) co_return;  // finish() has dropped what was taken
      self->drop_taken();
    }
    asio_error ignored;
    self->pipe.close(ignored);
  }

  // Of the piece that was copied.
  void drop_taken() {
    const std::size_t bytes = std::exchange(copied, 0);
    fifo->drop(bytes - std::min(bytes, unread()));
  }

  // By the command.
  std::size_t unread() const {
    int bytes = 0;
    return ::ioctl(inside.get(), FIONREAD, &bytes) == 0 ? static_cast<std::size_t>(bytes) : 0;
  }

  // As write(2). The process's own limit would be one for its logs too.
  ssize_t write_some(std::string_view bytes) {
    if (most_bytes) {
      struct stat status {};
      const bool appends = (::fcntl(source.get(), F_GETFL) & O_APPEND) != 0;
      const off_t at = appends && ::fstat(source.get(), &status) == 0 ? status.st_size
                                                                      : ::lseek(source.get(), 0, SEEK_CUR);
      const auto used = static_cast<std::uint64_t>(std::max<off_t>(at, 0));
      if (used >= *most_bytes) {
        at_limit = true;
        errno = EFBIG;
        return -1;
      }
      bytes = bytes.substr(0, *most_bytes - used);
    }
    return ::write(device.is_open() ? device.native_handle() : source.get(), bytes.data(), bytes.size());
  }

  asio::awaitable<bool> write_out(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = write_some(bytes);
      if (n >= 0) {
        bytes.remove_prefix(static_cast<std::size_t>(n));
      } else if (errno == EAGAIN) {
        if (abandoned || !co_await wait_until(device, stream::wait_write)) co_return false;
      } else if (errno != EINTR) {
        fail("write to");
        co_return false;
      }
    }
    co_return true;
  }

  static asio::awaitable<void> pump_out(std::shared_ptr<impl> self) {
    std::string buffer(chunk_bytes, '\0');
    while (!self->stopped) {
      if (!co_await wait_until(self->pipe, stream::wait_read)) break;
      if (self->stopped) break;
      if (!co_await self->pass_chunk(buffer)) break;
    }
    self->pumping = false;
    self->idle.cancel();
    if (!self->failure && !self->reader_gone) co_return;
    asio_error ignored;
    self->pipe.close(ignored);  // the command's next write tells it
  }

  // False at the end, or when it cannot go on.
  asio::awaitable<bool> pass_chunk(std::string& buffer) {
    if (fifo) co_return co_await move_to_fifo();
    const ssize_t n = ::read(pipe.native_handle(), buffer.data(), buffer.size());
    if (n < 0) co_return errno == EINTR || errno == EAGAIN;
    if (n == 0) co_return false;
    co_return co_await write_out({buffer.data(), static_cast<std::size_t>(n)});
  }

  asio::awaitable<bool> move_to_fifo() {
    const ssize_t n = fifo->move_from(pipe.native_handle());
    if (n < 0 && errno == EINTR) co_return true;
    if (n < 0 && errno == EAGAIN) co_return co_await fifo->ready();
    reader_gone = n < 0 && errno == EPIPE;
    if (n < 0 && !reader_gone) fail("write to");
    co_return n > 0;
  }

  int number = 0;
  unique_fd source;  // the caller's
  bool is_terminal = false;
  off_t position = -1;  // where the caller was; -1: it has none, or is written
  off_t passed = 0;
  std::optional<std::uint64_t> most_bytes;  // of a regular file that is written
  unique_fd inside;                         // the command's end of the pipe
  stream pipe, device;                      // device: what has no position, and may have to be waited for
  std::optional<fifo_stream> fifo;          // source, where it is one
  std::size_t copied = 0;                   // of it into the pipe, and not dropped yet
  bool reader_gone = false;                 // of it
  asio::steady_timer idle;                  // of one in the background; of finish()
  bool started = false, stopped = false, pumping = false, abandoned = false, at_limit = false;
  std::optional<error> failure;
};

descriptor_relay::descriptor_relay() = default;

result<std::unique_ptr<descriptor_relay>> descriptor_relay::open(asio::any_io_executor executor, int fd,
                                                                 std::optional<std::uint64_t> most_bytes) {
  std::unique_ptr<descriptor_relay> relay(new descriptor_relay);
  relay->impl_ = std::make_shared<impl>(executor);
  impl& self = *relay->impl_;
  self.number = fd;
  self.source = unique_fd(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!self.source) return system_error("fcntl", "", errno);
  self.is_terminal = ::isatty(fd) == 1;
  struct stat status {};
  if (::fstat(fd, &status) != 0) return system_error("fstat", "", errno);
  const bool is_device = S_ISCHR(status.st_mode);
  if (fd != 0 && S_ISREG(status.st_mode)) self.most_bytes = most_bytes;
  if (fd == 0 && !is_device) self.position = ::lseek(fd, 0, SEEK_CUR);
  const bool is_fifo = S_ISFIFO(status.st_mode);
  if (is_fifo)
    self.fifo.emplace(executor, self.source.get(),
                      fd == 0 ? shared_watch::direction::read : shared_watch::direction::write);
  if (is_device || (fd == 0 && self.position < 0 && !is_fifo)) {
    unique_fd own = self.is_terminal ? reopen_terminal(fd) : unique_fd(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
    if (!own) return system_error("open again", fd == 0 ? "standard input" : "a standard output", errno);
    asio_error failure;
    self.device.assign(own.get(), failure);
    if (failure)
      return system_error("watch", fd == 0 ? "standard input" : "a standard output", failure.value());
    own.release();
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error("pipe2", "", errno);
  unique_fd reader(ends[0]), writer(ends[1]);
  if (is_fifo && fd == 0) ::fcntl(writer.get(), F_SETPIPE_SZ, 1);  // the least, which holds one piece
  unique_fd& ours = fd == 0 ? writer : reader;
  set_nonblocking(ours.get());
  self.pipe.assign(ours.release());
  self.inside = std::move(fd == 0 ? reader : writer);
  return relay;
}

descriptor_relay::~descriptor_relay() {
  impl_->stopped = true;
  if (impl_->fifo) impl_->fifo->stop();
  asio_error ignored;
  impl_->idle.cancel();
  impl_->pipe.close(ignored);
  impl_->device.close(ignored);
}

result<unique_fd> descriptor_relay::command_end() const {
  unique_fd copy(::fcntl(impl_->inside.get(), F_DUPFD_CLOEXEC, 3));
  if (!copy) return system_error("fcntl", "", errno);
  return copy;
}

void descriptor_relay::start() {
  impl& self = *impl_;
  self.started = true;
  const auto log_failure = [keep = impl_](std::exception_ptr failure) {
    if (failure) log_event(log_level::error, "descriptor_relay");
  };
  if (self.number == 0 && self.fifo) {
    asio::co_spawn(self.pipe.get_executor(), impl::pump_fifo_in(impl_), log_failure);
  } else if (self.number == 0) {
    asio::co_spawn(self.pipe.get_executor(), impl::pump_in(impl_), log_failure);
  } else {
    self.inside.reset();  // or the pipe would never end
    self.pumping = true;
    asio::co_spawn(self.pipe.get_executor(), impl::pump_out(impl_), log_failure);
  }
}

asio::awaitable<void> descriptor_relay::finish() {
  const auto keep = impl_;
  impl& self = *keep;
  if (!self.started) co_return;
  if (self.number == 0) {
    self.stopped = true;
    if (self.fifo) {
      self.fifo->stop();
      self.drop_taken();
      co_return;
    }
    const bool is_ours = self.position >= 0 && ::lseek(self.source.get(), 0, SEEK_CUR) == self.position;
    if (is_ours)
      ::lseek(self.source.get(), self.position + self.passed - static_cast<off_t>(self.unread()), SEEK_SET);
    co_return;
  }
  // Whoever wrote is gone, so the pump comes to the end of the pipe.
  self.idle.expires_at(asio::steady_timer::time_point::max());
  asio_error ignored;
  if (self.pumping && !self.abandoned)
    co_await self.idle.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  self.stopped = true;
}

void descriptor_relay::abandon() {
  impl_->abandoned = true;
  if (impl_->fifo) impl_->fifo->stop();
  asio_error ignored;
  impl_->device.cancel(ignored);
  impl_->idle.cancel();
}

const std::optional<error>& descriptor_relay::failure() const {
  return impl_->failure;
}

}  // namespace ccbox
