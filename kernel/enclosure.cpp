#include "enclosure.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <map>

#include "gate.hpp"
#include "init_channel.hpp"
#include "launch_materials.hpp"
#include "log.hpp"
#include "os.hpp"
#include "syscall_filter.hpp"
#include "watched_descriptor.hpp"

namespace ccbox {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr auto end_of_stream_grace = 1s;  // between the end of the channel and that of the launcher
constexpr std::size_t most_denial_bytes = 32 << 10;
constexpr auto shutdown_margin = 1s;  // beyond the grace that init was told

// Built while the launcher starts, and once. `floored`: a broker does for the commands what creates.
const result<std::string>& base_filter(bool floored) {
  if (floored || ::geteuid() != 0) {
    static const result<std::string> whole = build_base_filter(filter_architecture::native, false);
    return whole;
  }
  static const result<std::string> without_openat2 = build_base_filter(filter_architecture::native, true);
  return without_openat2;
}

struct listen_request {
  explicit listen_request(const asio::any_io_executor& strand) : answered(strand) {}
  std::uint64_t id = 0;
  unsigned count = 0;
  gate answered;
  std::optional<std::vector<loopback_listener>> made;
  std::optional<init::failed_message> failed;
};

struct running_command {
  explicit running_command(const asio::any_io_executor& strand) : answered(strand), exited(strand) {}
  gate answered, exited;
  std::optional<started_command> started;
  std::optional<init::failed_message> failed;
  std::optional<exit_status> status;
};

}  // namespace

struct enclosure::impl : std::enable_shared_from_this<impl> {
  // Throws system_error if the event loop takes no more descriptors.
  impl(asio::any_io_executor s, launch_materials& m, child started, unique_fd end_watch, limit_group l)
      : strand(s),
        channel(s, std::move(m.channel_here)),
        channel_copy(std::move(m.channel_copy)),
        launcher(std::move(started)),
        launcher_end(s),
        denials(s),
        deadline(s),
        limits(std::move(l)),
        ready(s),
        over(s) {
    launcher_end.assign(end_watch.get());
    end_watch.release();
    if (m.denials_here) {
      denials.assign(m.denials_here.get());
      m.denials_here.release();
    }
  }

  asio::any_io_executor strand;
  init_channel channel;
  // Without a boundary: so that kill() can end the stream from any thread. Otherwise not open.
  const unique_fd channel_copy;
  child launcher;
  asio::posix::stream_descriptor launcher_end;
  asio::posix::stream_descriptor denials;  // not open where the plan has no such socket
  std::function<void(std::string_view)> denied;
  asio::steady_timer deadline;  // of the phase: start, end of stream, shutdown
  limit_group limits;
  gate ready;  // the handshake is complete, or failed
  gate over;
  bool shaken_hands = false, shutting_down = false;
  bool unconfined = false;
  std::string reason;  // why it ended; the first one wins
  std::uint64_t next_id = 1;
  std::map<std::uint64_t, std::shared_ptr<running_command>> commands;
  std::shared_ptr<listen_request> listening;  // until it is answered

  void begin() {
    auto log_failure = [](std::exception_ptr e) {
      if (e) log_event(log_level::error, "enclosure_coroutine");
    };
    asio::co_spawn(strand, read_frames(shared_from_this()), log_failure);
    asio::co_spawn(strand, watch_launcher(shared_from_this()), log_failure);
    if (denials.is_open()) asio::co_spawn(strand, read_denials(shared_from_this()), log_failure);
  }

  void set_reason(std::string text) {
    if (reason.empty()) reason = std::move(text);
  }

  error ended_error() const {
    return {error_code::unavailable,
            reason.empty() ? "the enclosure has ended" : "the enclosure has ended: " + reason, ""};
  }

  // The launcher's whole group: a child of it that has not become init yet can be reached in no other way.
  void force_end() const noexcept {
    constexpr unsigned process_group = 1u << 2;  // PIDFD_SIGNAL_PROCESS_GROUP, since Linux 6.9
    if (::syscall(SYS_pidfd_send_signal, launcher.pidfd(), SIGKILL, nullptr, process_group) == 0) return;
    const bool unknown_flag = errno == EINVAL;
    if (::syscall(SYS_pidfd_send_signal, launcher.pidfd(), SIGKILL, nullptr, 0) == 0 && unknown_flag)
      ::kill(-launcher.pid(), SIGKILL);
  }

  void force_end_after(std::chrono::milliseconds delay) {
    deadline.expires_after(delay);
    deadline.async_wait([self = weak_from_this()](boost::system::error_code e) {
      if (const auto alive = self.lock(); alive && !e) alive->force_end();
    });
  }

  // Everything that waits is answered; nothing can be asked any more.
  void finish() {
    if (over.is_open()) return;
    over.open();
    ready.open();
    deadline.cancel();
    channel.close();
    unwatch_and_close(launcher_end);
    take_denials();
    if (denials.is_open()) unwatch_and_close(denials);
    for (auto& [id, c] : commands) {
      c->answered.open();
      c->exited.open();
    }
    if (listening) listening->answered.open();
  }

  // The answer to a listen: false if it is none.
  bool settle_listening(init_channel::frame& f) {
    const auto asked = std::exchange(listening, nullptr);
    if (f.type == init::frame_type::listening) {
      const auto m = init::decode_listening(f.payload);
      if (m && m->ports.size() == asked->count) asked->made = take_listeners(*m, std::move(f.descriptors));
    } else if (f.type == init::frame_type::failed) {
      asked->failed = init::decode_failed(f.payload);
    }
    asked->answered.open();
    return asked->made || asked->failed;
  }

  result<void> handle(init_channel::frame f) {
    const auto unexpected = [&] {
      return error{error_code::failed, "ccbox-init sent an unexpected frame", ""};
    };
    if (shaken_hands && listening && f.id == listening->id) {
      if (!settle_listening(f)) return unexpected();
      return {};
    }
    const bool takes_descriptor = f.type == init::frame_type::started;
    if (f.descriptors.size() > (takes_descriptor ? 1u : 0u)) return unexpected();
    if (f.type == init::frame_type::ready) {
      const auto m = init::decode_ready(f.payload);
      if (!m || shaken_hands) return unexpected();
      if (m->version != init::protocol_version) {
        return error{error_code::failed,
                     "ccbox-init speaks version " + std::to_string(m->version) + " of the protocol, not " +
                         std::to_string(init::protocol_version),
                     "reinstall: kernel and ccbox-init belong together"};
      }
      shaken_hands = true;
      ready.open();
      return {};
    }
    const auto found = commands.find(f.id);
    if (!shaken_hands || found == commands.end()) return unexpected();
    running_command& c = *found->second;
    if (f.type == init::frame_type::exited) {
      const auto m = init::decode_exited(f.payload);
      if (!m || !c.started || c.status) return unexpected();
      c.status = exit_status{m->signalled, static_cast<int>(m->value)};
      c.exited.open();
      return {};
    }
    if (c.started || c.failed) return unexpected();
    if (f.type == init::frame_type::started) {
      const auto pid = init::decode_number(f.payload);
      if (!pid) return unexpected();
      c.started = started_command{f.id, static_cast<int>(*pid), {}};
      if (!f.descriptors.empty()) c.started->pty_master = std::move(f.descriptors[0]);
    } else {
      c.failed = f.type == init::frame_type::failed ? init::decode_failed(f.payload) : std::nullopt;
      if (!c.failed) return unexpected();
    }
    c.answered.open();
    return {};
  }

  // False when there will be no more frames.
  bool accept(result<init_channel::frame> f) {
    if (f) {
      const auto ok = handle(std::move(*f));
      if (ok) return true;
      set_reason(ok.error().what);
      force_end();
    } else if (f.error().code == error_code::failed) {
      set_reason(f.error().what);
      force_end();
    } else if (!shutting_down && !over.is_open()) {
      // The launcher follows its init within a moment; if it does not, it is not worth waiting for.
      force_end_after(end_of_stream_grace);
    }
    return false;
  }

  static asio::awaitable<void> read_frames(std::shared_ptr<impl> self) {
    for (;;) {
      auto f = co_await self->channel.receive();
      if (!self->accept(std::move(f))) co_return;
    }
  }

  // False when there will be none any more. What is waiting when the enclosure ends counts, too.
  bool take_denials() {
    std::array<char, most_denial_bytes> packet;
    while (denials.is_open()) {
      const auto size = ::recv(denials.native_handle(), packet.data(), packet.size(), MSG_DONTWAIT);
      if (size <= 0) return size < 0 && errno == EAGAIN;
      if (denied) denied({packet.data(), static_cast<std::size_t>(size)});
    }
    return false;
  }

  static asio::awaitable<void> read_denials(std::shared_ptr<impl> self) {
    while (self->take_denials()) {
      const auto [failure] = co_await self->denials.async_wait(asio::posix::stream_descriptor::wait_read,
                                                               asio::as_tuple(asio::use_awaitable));
      if (failure) co_return;
    }
  }

  static asio::awaitable<void> watch_launcher(std::shared_ptr<impl> self) {
    // A wait may end for no reason where several threads run the loop: the launcher's state decides.
    std::optional<exit_status> status;
    while (!status) {
      const auto [failure] = co_await self->launcher_end.async_wait(asio::posix::stream_descriptor::wait_read,
                                                                    asio::as_tuple(asio::use_awaitable));
      if (failure || self->over.is_open()) co_return;
      status = self->launcher.try_wait();
    }
    // What init said before it ended still counts.
    for (;;) {
      auto f = self->channel.try_receive();
      if (!f || !self->accept(std::move(*f))) break;
    }
    if (status->signalled) {
      self->set_reason("the launcher was killed by signal " + std::to_string(status->value));
    } else {
      self->set_reason("the launcher ended with code " + std::to_string(status->value));
    }
    self->finish();
  }
};

enclosure::enclosure() = default;

asio::awaitable<result<std::unique_ptr<enclosure>>> enclosure::start(
    asio::any_io_executor strand, plan p, std::string init_path, limit_group limits, unsigned timeout_ms,
    std::function<void(std::string_view)> denied) {
  auto gathered = gather_materials(p, init_path, limits);
  if (!gathered) co_return gathered.error();
  launch_materials m = std::move(*gathered);
  auto launcher = spawn(m.request);
  if (!launcher) co_return launcher.error();

  unique_fd end_watch(static_cast<int>(os::call(SYS_fcntl, launcher->pidfd(), F_DUPFD_CLOEXEC, 0)));
  if (!end_watch) co_return system_error("watch the launcher of", p.plugin, errno);
  m.channel_there.reset();
  m.init.reset();
  m.denials_there.reset();
  m.plan_descriptors.clear();

  std::unique_ptr<enclosure> made(new enclosure);
  try {
    made->impl_ =
        std::make_shared<impl>(strand, m, std::move(*launcher), std::move(end_watch), std::move(limits));
  } catch (const boost::system::system_error& e) {
    co_return system_error("watch the launcher of", p.plugin, e.code().value());
  }
  impl& self = *made->impl_;
  self.denied = std::move(denied);

  init::setup_message setup;
  self.unconfined = p.unconfined;
  if (p.unconfined) {
    setup.flags = init::setup_unconfined;
  } else {
    const auto& filter = base_filter(has_floor(p));
    if (!filter) co_return filter.error();
    setup.filter = *filter;
  }
  // If this fails, so does the launcher, and that tells more.
  [[maybe_unused]] const auto sent = self.channel.send(init::frame_type::setup, 0, init::encode(setup));
  self.begin();
  bool timed_out = false;
  self.deadline.expires_after(std::chrono::milliseconds(timeout_ms));
  self.deadline.async_wait([alive = made->impl_, &timed_out](boost::system::error_code e) {
    if (e || alive->ready.is_open()) return;
    timed_out = true;
    alive->force_end();
  });
  co_await self.ready.wait();
  if (self.shaken_hands && !self.over.is_open()) {
    self.deadline.cancel();
    co_return std::move(made);
  }
  error e{timed_out ? error_code::timeout : error_code::failed,
          "the enclosure of " + p.plugin + " did not start: ", ""};
  e.what += timed_out ? "no answer within " + std::to_string(timeout_ms) + " ms" : self.reason;
  const std::string text = m.standard_error();
  if (!text.empty()) e.what += "; it wrote " + quoted(text);
  co_return e;
}

enclosure::~enclosure() {
  if (!impl_) return;
  kill(2000);
  impl_->set_reason("it was destroyed");
  impl_->launcher.try_wait();
  impl_->finish();
  impl_->limits = limit_group();
}

asio::awaitable<result<std::vector<loopback_listener>>> enclosure::listen(unsigned count) {
  const auto self = impl_;
  if (self->over.is_open() || self->shutting_down) co_return self->ended_error();
  if (self->unconfined || self->next_id > 1) {
    co_return error{
        error_code::illegal_state,
        "sockets inside an enclosure are made once, before its first command, and only where there is a "
        "boundary",
        ""};
  }
  if (count < 1 || count > init::max_listen_ports)
    co_return error{error_code::invalid_argument,
                    std::to_string(count) + " listening ports: at least one, and " +
                        std::to_string(init::max_listen_ports) + " is the most",
                    ""};
  const auto request = std::make_shared<listen_request>(self->strand);
  request->id = self->next_id++;
  request->count = count;
  self->listening = request;
  const auto sent = self->channel.send(init::frame_type::listen, request->id, init::encode_number(count));
  if (sent) co_await request->answered.wait();
  if (request->made) co_return std::move(*request->made);
  if (request->failed)
    co_return system_error("listen inside the enclosure", "",
                           static_cast<int>(request->failed->error_number));
  co_return self->ended_error();
}

asio::awaitable<result<started_command>> enclosure::exec(command c) {
  const auto self = impl_;
  if (self->over.is_open() || self->shutting_down) co_return self->ended_error();
  auto message = to_message(c, self->limits);
  if (!message) co_return message.error();
  std::string payload = init::encode(*message);
  std::vector<unique_fd> descriptors;
  for (unique_fd& fd : c.descriptors) {
    if (fd) descriptors.push_back(std::move(fd));
  }
  if (payload.size() > init::max_payload_bytes) {
    co_return error{error_code::too_large,
                    "arguments and environment of " + quoted(c.argv[0]) + " are " +
                        std::to_string(payload.size()) + " bytes; " +
                        std::to_string(init::max_payload_bytes) + " is the most",
                    ""};
  }
  const std::uint64_t id = self->next_id++;
  const auto record = std::make_shared<running_command>(self->strand);
  self->commands.emplace(id, record);
  const auto sent =
      self->channel.send(init::frame_type::exec, id, std::move(payload), std::move(descriptors));
  if (sent) co_await record->answered.wait();
  if (record->started) {
    if (c.pty && !record->started->pty_master) {
      self->set_reason("ccbox-init sent no terminal");
      self->force_end();
      co_return error{error_code::failed, self->reason, ""};
    }
    co_return std::move(*record->started);
  }
  self->commands.erase(id);
  if (record->failed) co_return start_failure(c, *record->failed);
  co_return self->ended_error();
}

asio::awaitable<result<exit_status>> enclosure::wait(std::uint64_t id) {
  const auto self = impl_;
  const auto found = self->commands.find(id);
  if (found == self->commands.end()) {
    co_return error{error_code::not_found, "there is no command " + std::to_string(id), ""};
  }
  const auto record = found->second;
  co_await record->exited.wait();
  self->commands.erase(id);
  if (record->status) co_return *record->status;
  co_return self->ended_error();
}

asio::awaitable<result<void>> enclosure::signal(std::uint64_t id, int number) {
  const auto self = impl_;
  if (self->over.is_open()) co_return self->ended_error();
  if (number < 1 || number > 64)
    co_return error{error_code::invalid_argument, "there is no signal " + std::to_string(number), ""};
  const auto found = self->commands.find(id);
  if (found == self->commands.end() || found->second->status) {
    co_return error{error_code::not_found, "there is no running command " + std::to_string(id), ""};
  }
  co_return self->channel.send(init::frame_type::signal, id,
                               init::encode_number(static_cast<std::uint32_t>(number)));
}

asio::awaitable<void> enclosure::shutdown(unsigned grace_ms) {
  const auto self = impl_;
  const auto limit = std::chrono::milliseconds(grace_ms) + shutdown_margin;
  const bool sooner =
      !self->shutting_down || asio::steady_timer::clock_type::now() + limit < self->deadline.expiry();
  if (!self->over.is_open() && sooner) {
    self->shutting_down = true;
    self->set_reason("it was shut down");
    const auto sent = self->channel.send(init::frame_type::shutdown, 0, init::encode_number(grace_ms));
    self->force_end_after(sent ? limit : 0ms);
  }
  co_await self->over.wait();
}

asio::awaitable<void> enclosure::ended() {
  const auto self = impl_;
  co_await self->over.wait();
}

std::string enclosure::why_ended() const {
  return impl_->reason;
}

void enclosure::kill(unsigned limit_ms) const noexcept {
  pollfd gone{impl_->launcher.pidfd(), POLLIN, 0};
  if (impl_->channel_copy) {
    // init itself is all that knows the commands: it ends them when the channel does.
    ::shutdown(impl_->channel_copy.get(), SHUT_RDWR);
    if (::poll(&gone, 1, static_cast<int>(limit_ms)) == 1) return;
  }
  impl_->force_end();
  ::poll(&gone, 1, static_cast<int>(limit_ms));
}

pid_t enclosure::launcher_pid() const {
  return impl_->launcher.pid();
}

bool enclosure::alive() const {
  return !impl_->over.is_open();
}

const limit_group& enclosure::limits() const {
  return impl_->limits;
}

}  // namespace ccbox
