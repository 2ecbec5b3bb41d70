#include "tunnel.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>

namespace ccbox::egress {
namespace {

// A read of this size that comes back full announces more.
constexpr std::size_t small_bytes = 16 * 1024;
// Then another tunnel has its turn.
constexpr int most_rounds = 32;

using clock = std::chrono::steady_clock;

}  // namespace

tunnel::tunnel(worker& where, side client, side origin, tunnel_limits limits, std::optional<sni_check> check,
               callbacks then)
    : worker_(where),
      client_(std::move(client.socket)),
      origin_(std::move(origin.socket)),
      limits_(limits),
      check_(std::move(check)),
      then_(std::move(then)),
      limit_(where.deadlines(), [this] { look_at_the_clock(); }),
      started_(clock::now()),
      active_(started_) {
  if (check_ && !check_->needed()) check_.reset();
  up_.from = down_.to = &client_;
  up_.to = down_.from = &origin_;
  (check_ ? held_ : up_.pending) = std::move(client.early);
  down_.pending = std::move(origin.early);
  up_.bytes = up_.pending.size();
  down_.bytes = down_.pending.size();
  // Room for a whole head comes with them; an idle tunnel would hold it until its end.
  held_.shrink_to_fit();
  up_.pending.shrink_to_fit();
  down_.pending.shrink_to_fit();
  worker_.pipes().enter();
}

tunnel::~tunnel() {
  for (auto* d : {&up_, &down_})
    worker_.pipes().give_back(d->pipe, d->in_pipe == 0);
  worker_.pipes().leave();
}

void tunnel::start() {
  const auto self = shared_from_this();
  look_at_the_clock();
  pump(down_);
  pump(up_);
}

void tunnel::abort() {
  const auto self = shared_from_this();
  finish(false);
}

void tunnel::pump(direction& d) {
  for (int round = 0; !over_; ++round) {
    if (round == most_rounds)
      return asio::post(worker_.executor(), [self = shared_from_this(), &d] { self->pump(d); });
    switch (step(d)) {
      case progress::again:
        continue;
      case progress::wait_read:
        if (d.in_pipe == 0) worker_.pipes().give_back(d.pipe, true);
        return wait(d, *d.from, asio::socket_base::wait_read);
      case progress::wait_write:
        return wait(d, *d.to, asio::socket_base::wait_write);
      case progress::broken:
        return finish(false);
      case progress::finished:
        worker_.pipes().give_back(d.pipe, true);
        d.over = true;
        if (up_.over && down_.over) return finish(true);
        return look_at_the_clock();
    }
  }
}

void tunnel::wait(direction& d, stream_socket& socket, asio::socket_base::wait_type what) {
  socket.async_wait(what, [self = shared_from_this(), &d](boost::system::error_code stopped) {
    if (stopped || self->over_) return;
    self->active_ = clock::now();
    self->pump(d);
  });
}

tunnel::progress tunnel::step(direction& d) {
  if (!d.pending.empty()) return send_pending(d);
  if (check_ && &d == &up_) return gather(d);
  if (d.in_pipe > 0) return empty_pipe(d);
  if (d.from_ended) {
    ::shutdown(d.to->native_handle(), SHUT_WR);
    return progress::finished;
  }
  const bool read_by_check = check_ && &d == &down_ && check_->watching();
  return d.bulk && !read_by_check ? fill_pipe(d) : copy(d);
}

tunnel::progress tunnel::gather(direction& d) {
  const auto noted = check_->note();
  const auto verdict = check_->look(held_);
  if (verdict == sni_check::verdict::wait && !d.from_ended) {
    auto& scratch = worker_.scratch();
    const auto n = receive_now(d.from->native_handle(), scratch.data(), small_bytes);
    if (n < 0) return would_block(errno) ? progress::wait_read : progress::broken;
    d.from_ended = n == 0;
    held_.append(scratch.data(), static_cast<std::size_t>(n));
    return progress::again;
  }
  if (check_->note() != noted && then_.sni_noted) then_.sni_noted(*check_);
  if (verdict == sni_check::verdict::refuse) {
    send_now(d.from->native_handle(), sni_check::alert);
    refused_ = true;
    finish(true);
    return progress::finished;
  }
  // Half a hello and no more to come: no server can answer it.
  const bool unanswerable = verdict == sni_check::verdict::wait;
  const auto size = unanswerable ? held_.size() : check_->passed();
  d.pending.assign(held_, 0, size);
  held_.erase(0, size);
  d.bytes += size;
  held_.shrink_to_fit();
  if (unanswerable || check_->over()) check_.reset();
  return progress::again;
}

tunnel::progress tunnel::send_pending(direction& d) {
  const auto rest = std::string_view(d.pending).substr(d.pending_sent);
  const auto n = send_now(d.to->native_handle(), rest);
  if (n < 0) return would_block(errno) ? progress::wait_write : progress::broken;
  d.pending_sent += static_cast<std::size_t>(n);
  if (d.pending_sent == d.pending.size()) {
    std::string().swap(d.pending);
    d.pending_sent = 0;
  }
  return progress::again;
}

tunnel::progress tunnel::copy(direction& d) {
  auto& scratch = worker_.scratch();
  const auto n = receive_now(d.from->native_handle(), scratch.data(), small_bytes);
  if (n < 0) return would_block(errno) ? progress::wait_read : progress::broken;
  if (n == 0) {
    d.from_ended = true;
    return progress::again;
  }
  const std::string_view got(scratch.data(), static_cast<std::size_t>(n));
  if (check_ && &d == &down_ && check_->watching()) check_->origin_sent(got);
  d.bytes += got.size();
  d.bulk = got.size() == small_bytes;
  const auto sent = send_now(d.to->native_handle(), got);
  if (sent < 0 && !would_block(errno)) return progress::broken;
  const auto taken = static_cast<std::size_t>(std::max<std::ptrdiff_t>(sent, 0));
  if (taken < got.size()) {
    d.pending.assign(got.substr(taken));
    return progress::wait_write;
  }
  // A short read has emptied the socket; waiting reports what comes later, and the end.
  return d.bulk ? progress::again : progress::wait_read;
}

tunnel::progress tunnel::fill_pipe(direction& d) {
  if (!d.pipe) d.pipe = worker_.pipes().take();
  if (!d.pipe) return copy(d);
  const auto n = ::splice(d.from->native_handle(), nullptr, d.pipe.write_end, nullptr,
                          pipe_pool::capacity_bytes, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (n < 0 && errno == EINTR) return progress::again;
  if (n < 0) return would_block(errno) ? progress::wait_read : progress::broken;
  d.from_ended = n == 0;
  d.bulk = n >= static_cast<std::ptrdiff_t>(small_bytes);
  d.in_pipe = static_cast<std::size_t>(n);
  d.bytes += d.in_pipe;
  return progress::again;
}

tunnel::progress tunnel::empty_pipe(direction& d) {
  const auto n = ::splice(d.pipe.read_end, nullptr, d.to->native_handle(), nullptr, d.in_pipe,
                          SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (n < 0 && errno == EINTR) return progress::again;
  if (n < 0) return would_block(errno) ? progress::wait_write : progress::broken;
  d.in_pipe -= static_cast<std::size_t>(n);
  return progress::again;
}

void tunnel::look_at_the_clock() {
  if (over_) return;
  const auto self = shared_from_this();
  const auto quiet = up_.over || down_.over ? std::min(limits_.half_closed, limits_.idle) : limits_.idle;
  const auto due = std::min(started_ + limits_.life, active_ + quiet);
  if (due <= clock::now()) return finish(true);
  limit_.at(due);
}

void tunnel::finish(bool in_order) {
  if (std::exchange(over_, true)) return;
  limit_.clear();
  for (auto* socket : {&client_, &origin_}) {
    if (!in_order) reset_on_close(socket->native_handle());
    boost::system::error_code ignored;
    socket->close(ignored);
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - started_);
  if (const auto ended = std::exchange(then_.ended, nullptr)) ended({up_.bytes, down_.bytes, took, refused_});
}

}  // namespace ccbox::egress
