#include "output_pump.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstdint>
#include <optional>

#include "gate.hpp"
#include "log.hpp"
#include "watched_descriptor.hpp"

namespace ccbox {
namespace {

namespace asio = boost::asio;

constexpr std::size_t chunk_bytes = 64 << 10;

}  // namespace

result<pipe_ends> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0) return system_error("pipe2", "", errno);
  return pipe_ends{unique_fd(ends[0]), unique_fd(ends[1])};
}

struct output_pump::impl {
  impl(asio::any_io_executor strand, sink s)
      : source(strand), patience(strand), to(std::move(s)), caught_up(strand), settled(strand) {}

  asio::posix::stream_descriptor source;
  asio::steady_timer patience;
  sink to;
  std::uint64_t read_bytes = 0, taken_bytes = 0;
  std::optional<std::uint64_t> target;
  gate caught_up;  // `target` bytes were taken, or the end was reached
  gate settled;    // the end was reached, or nobody waits for it any more

  void end() {
    unwatch_and_close(source);
    caught_up.open();
    settled.open();
    patience.cancel();
    to = nullptr;  // it may hold what holds the pump
  }

  // Empty at the end; nothing when there is nothing to read now.
  std::optional<std::string> read_chunk() {
    // One buffer for all pumps of a thread, so that an idle one costs nothing.
    thread_local char buffer[chunk_bytes];
    for (;;) {
      const ssize_t n = ::read(source.native_handle(), buffer, sizeof buffer);
      if (n >= 0) return std::string(buffer, static_cast<std::size_t>(n));
      if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
      if (errno != EINTR) return std::string();  // EIO: the other side of a terminal was closed
    }
  }

  static asio::awaitable<void> run(std::shared_ptr<impl> self) {
    while (self->source.is_open()) {
      auto chunk = self->read_chunk();
      if (!chunk) {
        co_await self->source.async_wait(asio::posix::stream_descriptor::wait_read,
                                         asio::as_tuple(asio::use_awaitable));
        continue;
      }
      if (chunk->empty()) break;
      const std::size_t bytes = chunk->size();
      self->read_bytes += bytes;
      co_await self->to(std::move(*chunk));
      self->taken_bytes += bytes;
      if (self->target && self->taken_bytes >= *self->target) self->caught_up.open();
    }
    self->end();
  }
};

result<std::shared_ptr<output_pump>> output_pump::start(asio::any_io_executor strand, unique_fd source,
                                                        sink to) {
  const int flags = ::fcntl(source.get(), F_GETFL);
  if (flags < 0 || ::fcntl(source.get(), F_SETFL, flags | O_NONBLOCK) < 0) {
    return system_error("make non-blocking", "output of a command", errno);
  }
  std::shared_ptr<output_pump> made(new output_pump);
  made->impl_ = std::make_shared<impl>(strand, std::move(to));
  boost::system::error_code e;
  made->impl_->source.assign(source.get(), e);
  if (e) return system_error("watch", "output of a command", e.value());
  source.release();
  asio::co_spawn(strand, impl::run(made->impl_), [self = made->impl_](std::exception_ptr failure) {
    if (!failure) return;
    log_event(log_level::error, "output_pump");
    self->end();
  });
  return made;
}

asio::awaitable<void> output_pump::drained(unsigned patience_ms) {
  const auto self = impl_;
  if (self->settled.is_open()) co_return;
  int pending = 0;
  ::ioctl(self->source.native_handle(), FIONREAD, &pending);
  self->target = self->read_bytes + static_cast<std::uint64_t>(pending < 0 ? 0 : pending);
  if (self->taken_bytes >= *self->target) self->caught_up.open();
  co_await self->caught_up.wait();
  if (self->settled.is_open()) co_return;
  self->patience.expires_after(std::chrono::milliseconds(patience_ms));
  self->patience.async_wait([self](boost::system::error_code e) {
    if (!e) self->settled.open();
  });
  co_await self->settled.wait();
}

int output_pump::descriptor() const {
  return impl_->source.is_open() ? impl_->source.native_handle() : -1;
}

void output_pump::stop() {
  impl_->end();
}

}  // namespace ccbox
