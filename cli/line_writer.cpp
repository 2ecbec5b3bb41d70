#include "line_writer.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

namespace ccbox {

namespace asio = boost::asio;
using clock = std::chrono::steady_clock;

namespace {

constexpr std::chrono::milliseconds look_interval{250};

}  // namespace

line_writer::line_writer(const asio::any_io_executor& executor, int fd, std::function<bool()> ending)
    : fd_(fd), watch_(executor, fd, shared_watch::direction::write), ending_(std::move(ending)) {}

void line_writer::add(std::string_view line) {
  if (given_up_)
    dropped_ |= !line.empty();
  else if (failure_ == 0)
    waiting_ += line;
}

void line_writer::write_some() {
  std::size_t most = waiting_.size() - written_;
  if (!watch_.always_ready()) most = std::min<std::size_t>(most, PIPE_BUF);
  const ssize_t n = ::write(fd_, waiting_.data() + written_, most);
  if (n >= 0)
    written_ += static_cast<std::size_t>(n);
  else if (errno != EINTR && errno != EAGAIN)
    failure_ = errno;
}

asio::awaitable<void> line_writer::flush() {
  auto impatient_since = clock::now();
  while (waits()) {
    if (watch_.is_ready()) {
      write_some();
      last_taken_ = clock::now();
      continue;
    }
    if (!ending_()) impatient_since = clock::now();
    if (clock::now() - std::max(impatient_since, last_taken_) >= patience)
      give_up();
    else
      co_await watch_.wait(look_interval);
  }
  waiting_.clear();
  written_ = 0;
}

void line_writer::give_up() {
  given_up_ = true;
  dropped_ |= written_ < waiting_.size();
  watch_.cancel();
}

}  // namespace ccbox
