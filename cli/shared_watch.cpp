#include "shared_watch.hpp"

#include <poll.h>
#include <sys/epoll.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "unique_fd.hpp"

namespace ccbox {

namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;

shared_watch::shared_watch(const asio::any_io_executor& executor, int fd, direction what)
    : fd_(fd), what_(what), around_(executor), limit_(executor) {
  unique_fd made(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = what == direction::read ? EPOLLIN : EPOLLOUT;
  if (!made || ::epoll_ctl(made.get(), EPOLL_CTL_ADD, fd, &event) != 0) return;
  boost::system::error_code failed;
  around_.assign(made.get(), failed);
  if (!failed) made.release();
}

bool shared_watch::is_ready() const {
  pollfd state{fd_, static_cast<short>(what_ == direction::read ? POLLIN : POLLOUT), 0};
  return always_ready() || ::poll(&state, 1, 0) != 0;
}

asio::awaitable<void> shared_watch::wait(std::chrono::milliseconds at_most) {
  if (is_ready()) co_return;
  limit_.expires_after(at_most);
  co_await (
      around_.async_wait(asio::posix::stream_descriptor::wait_read, asio::as_tuple(asio::use_awaitable)) ||
      limit_.async_wait(asio::as_tuple(asio::use_awaitable)));
}

void shared_watch::cancel() {
  boost::system::error_code ignored;
  around_.cancel(ignored);
}

}  // namespace ccbox
