#include "origin_pool.hpp"

namespace ccbox::egress {

origin_pool::origin_pool(deadline_queue& deadlines, std::size_t most, std::chrono::milliseconds keep)
    : most_(most), keep_(keep), oldest_(deadlines, [this] { drop_old(); }) {}

std::optional<stream_socket> origin_pool::take(const destination& to) {
  for (auto at = idle_.begin(); at != idle_.end();) {
    if (!(at->to == to)) {
      ++at;
      continue;
    }
    auto socket = std::move(at->socket);
    at = idle_.erase(at);
    if (look(socket.native_handle()) == liveness::idle) return socket;
  }
  return std::nullopt;
}

void origin_pool::put(const destination& to, stream_socket idle) {
  const auto until = std::chrono::steady_clock::now() + keep_;
  idle_.push_front({to, std::move(idle), until});
  if (idle_.size() > most_) idle_.pop_back();
  oldest_.at(idle_.back().until);
}

void origin_pool::clear() {
  idle_.clear();
}

void origin_pool::drop_old() {
  const auto now = std::chrono::steady_clock::now();
  while (!idle_.empty() && idle_.back().until <= now)
    idle_.pop_back();
  if (!idle_.empty()) oldest_.at(idle_.back().until);
}

}  // namespace ccbox::egress
