#include "supervisor.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "loopback.hpp"

namespace ccbox::init {
namespace {

// Turns of one kind before the others get theirs, in a flood.
constexpr int requests_a_turn = 64;
constexpr int reaped_a_turn = 256;
constexpr int stalled_retry_ms = 50;
constexpr int dying_limit_ms =
    5000;  // a process in uninterruptible sleep, or of another user, does not go away

std::int64_t now_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

bool poll_one(int fd, short events, std::int64_t limit_ms) {
  pollfd waiting{fd, events, 0};
  return poll(&waiting, 1, static_cast<int>(std::clamp<std::int64_t>(limit_ms, 0, dying_limit_ms))) > 0;
}

}  // namespace

supervisor::supervisor(channel& kernel_side, unique_fd signals, bool confined)
    : channel_(kernel_side),
      signals_(std::move(signals)),
      confined_(confined),
      population_(confined),
      may_listen_(confined) {}

void supervisor::run() {
  for (;;) {
    if (!channel_.flush()) end(0);
    wait_for_events();
    if (deadline_ms_ && (childless_ || now_ms() >= *deadline_ms_)) finish_shutdown();
  }
}

void supervisor::wait_for_events() {
  const short reading = channel_.congested() ? 0 : POLLIN;
  const short writing = channel_.pending() && !channel_.stalled() ? POLLOUT : 0;
  std::vector<pollfd> waiting{{channel_.descriptor(), static_cast<short>(reading | writing), 0},
                              {signals_.get(), POLLIN, 0}};
  for (const auto& each : commands_)
    if (each.start) waiting.push_back({each.start.get(), POLLIN, 0});
  poll(waiting.data(), waiting.size(), wait_limit_ms());

  settle_started();
  if (waiting[1].revents != 0 || more_to_reap_) reap();
  if (waiting[0].revents & POLLIN)
    take_requests();
  else if (waiting[0].revents & (POLLHUP | POLLERR | POLLNVAL))
    end(0);
}

int supervisor::wait_limit_ms() const {
  if (more_to_reap_) return 0;
  std::int64_t limit = channel_.stalled() ? stalled_retry_ms : -1;
  if (deadline_ms_) {
    const auto left = childless_ ? 0 : std::clamp<std::int64_t>(*deadline_ms_ - now_ms(), 0, 1 << 30);
    limit = limit < 0 ? left : std::min(limit, left);
  }
  return static_cast<int>(limit);
}

void supervisor::take_requests() {
  for (int i = 0; i < requests_a_turn && !channel_.congested(); ++i) {
    frame request;
    switch (channel_.receive(request)) {
      case channel::input::nothing:
        return;
      case channel::input::complete:
        act_on(request);
        break;
      case channel::input::ended:
        end(0);
      case channel::input::malformed:
        end(1);
    }
  }
}

void supervisor::act_on(frame& request) {
  switch (request.header.type) {
    case frame_type::exec:
      return start(request);
    case frame_type::signal:
      return signal(request);
    case frame_type::shutdown:
      return begin_shutdown(request);
    case frame_type::listen:
      return listen(request);
    default:
      end(1);
  }
}

void supervisor::start(frame& request) {
  const auto id = request.header.id;
  const auto message = decode_exec(request.payload);
  constexpr std::uint32_t descriptor_flags = exec_stdin | exec_stdout | exec_stderr;
  if (!message || find(id) || std::popcount(message->flags & descriptor_flags) != request.header.descriptors)
    end(1);
  request.payload = {};
  may_listen_ = false;

  std::optional<failed_message> failure;
  command started;
  started.id = id;
  if (deadline_ms_)
    failure = failed_message{exec_stage::fork, ECANCELED};
  else if (request.descriptors_lost)
    failure = failed_message{exec_stage::descriptors, EMFILE};
  else
    failure = start_command(*message, std::move(request.descriptors), confined_, started);
  if (failure)
    channel_.send(frame_type::failed, id, encode(*failure));
  else
    commands_.push_back(std::move(started));
}

void supervisor::signal(const frame& request) {
  const auto number = decode_number(request.payload);
  if (!number || *number < 1 || *number > static_cast<std::uint32_t>(SIGRTMAX) ||
      request.header.descriptors != 0)
    end(1);
  if (const auto* target = find(request.header.id)) signal_command(*target, static_cast<int>(*number));
}

void supervisor::begin_shutdown(const frame& request) {
  const auto grace_ms = decode_number(request.payload);
  if (!grace_ms || request.header.descriptors != 0) end(1);
  const auto deadline = now_ms() + *grace_ms;
  deadline_ms_ = deadline_ms_ ? std::min(*deadline_ms_, deadline) : deadline;
  population_.signal_all(SIGTERM);
  population_.signal_all(SIGCONT);  // a stopped process cannot end
  reap();
}

// Whoever has run a command may not be told any more that what listens here is the session's.
void supervisor::listen(const frame& request) {
  const auto count = decode_number(request.payload);
  if (!count || *count < 1 || *count > max_listen_ports || request.header.descriptors != 0) end(1);
  const auto id = request.header.id;
  int failure = std::exchange(may_listen_, false) ? 0 : EPERM;
  listening_message answer;
  std::vector<unique_fd> sockets;
  for (std::uint32_t i = 0; i < *count && failure == 0; ++i) {
    loopback_port port;
    failure = open_loopback_port(port);
    if (failure != 0) break;
    answer.ports.push_back({port.number, static_cast<bool>(port.v6)});
    sockets.push_back(std::move(port.v4));
    if (port.v6) sockets.push_back(std::move(port.v6));
  }
  if (failure != 0)
    channel_.send(frame_type::failed, id,
                  encode(failed_message{exec_stage::listen, static_cast<std::uint32_t>(failure)}));
  else
    channel_.send(frame_type::listening, id, encode(answer), std::move(sockets));
}

void supervisor::settle_started() {
  for (std::size_t i = commands_.size(); i-- > 0;)
    if (commands_[i].start) settle(i);
}

// Sends what became of the start, once it is known. A command that failed to start leaves the table.
void supervisor::settle(std::size_t index) {
  auto& c = commands_[index];
  failed_message why;
  switch (poll_start(c, why)) {
    case start_outcome::pending:
      return;
    case start_outcome::running: {
      std::vector<unique_fd> master;
      if (c.master) master.push_back(std::move(c.master));
      channel_.send(frame_type::started, c.id, encode_number(static_cast<std::uint32_t>(c.pid)),
                    std::move(master));
    }
      return;
    case start_outcome::failed:
      channel_.send(frame_type::failed, c.id, encode(why));
      commands_.erase(commands_.begin() + static_cast<std::ptrdiff_t>(index));
      return;
  }
}

void supervisor::reap() {
  signalfd_siginfo ignored[8];
  while (read(signals_.get(), ignored, sizeof ignored) > 0) {
  }
  more_to_reap_ = false;
  for (int i = 0; i < reaped_a_turn; ++i) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG | __WALL);
    childless_ = pid < 0;
    if (pid <= 0) return;
    ended(pid, status);
  }
  more_to_reap_ = true;
}

void supervisor::ended(pid_t pid, int status) {
  const auto is_it = [pid](const command& c) { return c.pid == pid; };
  auto found = std::find_if(commands_.begin(), commands_.end(), is_it);
  if (found == commands_.end()) return;  // an orphan, or a command that failed to start
  if (found->start) {
    settle(static_cast<std::size_t>(found - commands_.begin()));
    found = std::find_if(commands_.begin(), commands_.end(), is_it);
    if (found == commands_.end()) return;
  }
  const bool signalled = WIFSIGNALED(status);
  const auto value = static_cast<std::uint32_t>(signalled ? WTERMSIG(status) : WEXITSTATUS(status));
  channel_.send(frame_type::exited, found->id, encode(exited_message{signalled, value}));
  commands_.erase(found);
}

void supervisor::kill_and_reap(int limit_ms) {
  const auto give_up = now_ms() + limit_ms;
  for (;;) {
    population_.kill_all();
    do
      reap();
    while (more_to_reap_);
    if (childless_ || now_ms() >= give_up) return;
    poll_one(signals_.get(), POLLIN, 10);
  }
}

void supervisor::finish_shutdown() {
  kill_and_reap(dying_limit_ms);
  const auto give_up = now_ms() + 1000;
  while (channel_.flush() && channel_.pending() && now_ms() < give_up)
    poll_one(channel_.descriptor(), channel_.stalled() ? 0 : POLLOUT,
             channel_.stalled() ? 10 : give_up - now_ms());
  _exit(0);
}

// In an enclosure the kernel kills everything when its first process ends.
void supervisor::end(int code) {
  if (!confined_) kill_and_reap(dying_limit_ms);
  _exit(code);
}

command* supervisor::find(std::uint64_t id) {
  const auto found =
      std::find_if(commands_.begin(), commands_.end(), [id](const command& c) { return c.id == id; });
  return found == commands_.end() ? nullptr : &*found;
}

}  // namespace ccbox::init
