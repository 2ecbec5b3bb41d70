#include "pipe_pool.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace ccbox::egress {

pipe_pool::~pipe_pool() {
  close_all();
}

pipe_pool::pipe pipe_pool::take() {
  if (!free_.empty()) {
    const pipe last = free_.back();
    free_.pop_back();
    return last;
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return {};
  // Larger than the default if the user's share of pipe memory allows; it works with any size.
  ::fcntl(ends[0], F_SETPIPE_SZ, static_cast<int>(capacity_bytes));
  return {ends[0], ends[1]};
}

void pipe_pool::give_back(pipe& lent, bool is_empty) {
  const pipe one = std::exchange(lent, pipe{});
  if (!one) return;
  if (is_empty && users_ > 0 && free_.size() < most_kept) {
    free_.push_back(one);
    return;
  }
  ::close(one.read_end);
  ::close(one.write_end);
}

void pipe_pool::leave() {
  if (--users_ == 0) close_all();
}

void pipe_pool::close_all() {
  for (const auto& one : free_) {
    ::close(one.read_end);
    ::close(one.write_end);
  }
  std::vector<pipe>().swap(free_);
}

}  // namespace ccbox::egress
