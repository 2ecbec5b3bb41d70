#include "session.hpp"

#include <signal.h>
#include <sys/ioctl.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <deque>
#include <map>
#include <mutex>
#include <set>

#include "denial.hpp"
#include "gate.hpp"
#include "log.hpp"
#include "output_pump.hpp"
#include "report_queue.hpp"
#include "session_errors.hpp"

namespace ccbox {
namespace {

namespace asio = boost::asio;

constexpr unsigned start_limit_ms = 10000;
constexpr unsigned output_patience_ms = 100;  // for a background process to close a command's output
constexpr unsigned timeout_grace_ms = 1000;   // between TERM and KILL when a limit ends the session
constexpr unsigned subscriber_patience_ms =
    5000;  // for subscribers to take the last events before destroy() returns
constexpr std::size_t remembered_commands = 1000;

using turn_channel = asio::experimental::channel<void(boost::system::error_code)>;

struct turn_over {
  turn_channel& turn;
  ~turn_over() { turn.try_send(boost::system::error_code()); }
};

// A command of the session, from the request on.
struct command_record {
  explicit command_record(const asio::any_io_executor& strand) : done(strand) {}
  std::uint64_t id = 0;  // 0 until it has started
  std::vector<std::shared_ptr<output_pump>> pumps;
  std::shared_ptr<output_pump> terminal;  // captured pty
  std::optional<result<exit_status>> status;
  gate done;  // its exit was published, or it did not start
};
using record_ptr = std::shared_ptr<command_record>;

}  // namespace

struct session::impl : std::enable_shared_from_this<impl> {
  impl(asio::any_io_executor s, const event_bus& bus, policy r)
      : strand(s),
        to_bus(bus.publisher()),
        rules(std::move(r)),
        turn(s, 1),
        wall_time(s),
        patience(s),
        settled(s) {
    handle.session_id = rules.spec.session_id;
    turn.try_send(boost::system::error_code());
  }

  const asio::any_io_executor strand;
  // The last coroutines may run when the port and its bus are gone already.
  const std::function<asio::awaitable<void>(sandbox_event)> to_bus;
  const policy rules;
  environment env;

  mutable std::mutex mutex;  // of what other threads read
  sandbox_handle handle;
  std::optional<kill_reason> reason;
  std::shared_ptr<enclosure> inside;
  std::shared_ptr<session_proxies> network;
  mutable bool abandoned = false;
  bool at_rest = false;

  report_queue reports;

  // Only on the strand from here on.
  turn_channel turn;  // holds one token: one publisher at a time
  asio::steady_timer wall_time, patience;
  std::map<std::uint64_t, record_ptr> commands;
  std::deque<std::uint64_t> ended_commands;
  std::set<record_ptr> open_commands;  // not done yet, those about to start too
  std::size_t running = 0;
  bool killed_running = false;  // when the first reason came, something ran
  bool destroying = false, finishing = false;
  gate settled;  // nothing runs any more and the last event was published, or destroy() lost its patience

  // ---- handle and state ----

  sandbox_state state() const {
    std::lock_guard lock(mutex);
    return handle.state;
  }

  void move_to(sandbox_state to, std::optional<error> failure = {}) {
    std::lock_guard lock(mutex);
    if (handle.state == to) return;
    if (auto ok = transition(handle, to); !ok) {
      log_event(log_level::error, "session_state",
                {{"session", handle.session_id}, {"what", ok.error().what}});
      return;
    }
    if (to == sandbox_state::error) handle.failure = std::move(failure);
  }

  // The first reason to end the session wins; a kill for memory that nobody had noticed yet came before this
  // one.
  void claim(kill_reason r) {
    const bool oom = inside && inside->limits().out_of_memory();
    std::lock_guard lock(mutex);
    if (reason || finishing) return;
    reason = oom ? kill_reason::oom : r;
    killed_running = running > 0;
  }

  void background(asio::awaitable<void> work) {
    asio::co_spawn(strand, std::move(work), [self = shared_from_this()](std::exception_ptr failure) {
      if (failure)
        log_event(log_level::error, "session_coroutine", {{"session", self->rules.spec.session_id}});
    });
  }

  // ---- events ----

  static asio::awaitable<void> publish(std::shared_ptr<impl> self, sandbox_event event) {
    event.session_id = self->rules.spec.session_id;
    co_await self->turn.async_receive(asio::as_tuple(asio::use_awaitable));
    const turn_over over{self->turn};
    co_await self->to_bus(std::move(event));
  }

  static asio::awaitable<void> publish_type(std::shared_ptr<impl> self, sandbox_event_type type) {
    sandbox_event event;
    event.type = type;
    co_await publish(self, std::move(event));
  }

  // A pump's sink. The session is there as long as its enclosure is; the pump must not keep it.
  static asio::awaitable<void> publish_output(std::weak_ptr<impl> session, std::uint64_t exec_id,
                                              sandbox_event_type type, std::string bytes) {
    const auto self = session.lock();
    if (!self) co_return;
    sandbox_event event;
    event.type = type;
    event.exec_id = exec_id;
    event.data = std::move(bytes);
    co_await publish(self, std::move(event));
  }

  result<std::shared_ptr<output_pump>> start_pump(const record_ptr& record, unique_fd source,
                                                  sandbox_event_type type) {
    auto pump = output_pump::start(strand, std::move(source),
                                   [weak = weak_from_this(), id = record->id, type](std::string bytes) {
                                     return publish_output(weak, id, type, std::move(bytes));
                                   });
    if (pump) record->pumps.push_back(*pump);
    return pump;
  }

  // ---- what plugins report ----

  ccbox_status report(std::string_view type, std::string_view json) {
    auto event = event_of_report(type, json, rules.spec.capabilities);
    if (!event) return CCBOX_INVALID;
    const auto taken = reports.push(std::move(*event));
    if (taken == report_queue::answer::first) background(publish_reports(shared_from_this(), false));
    if (taken == report_queue::answer::full) return CCBOX_TOO_LARGE;
    return taken == report_queue::answer::closed ? CCBOX_UNAVAILABLE : CCBOX_OK;
  }

  static asio::awaitable<void> publish_reports(std::shared_ptr<impl> self, bool last) {
    while (auto report = self->reports.next(last))
      co_await publish(self, std::move(*report));
    if (last && self->reports.dropped() > 0)
      log_event(log_level::warn, "reports_dropped",
                {{"session", self->rules.spec.session_id}, {"count", self->reports.dropped()}});
  }

  // ---- start and end ----

  static asio::awaitable<result<void>> start_proxies(std::shared_ptr<impl> self, bool unconfined,
                                                     session_proxies::source from) {
    if (!from.plugin) co_return result<void>{};
    if (self->destroy_requested())
      co_return error{error_code::illegal_state, "the session was destroyed while it was starting", ""};
    auto started = co_await session_proxies::start(self->strand, std::move(from), self->rules,
                                                   unconfined ? nullptr : self->inside.get());
    if (!started) co_return started.error();
    std::lock_guard lock(self->mutex);
    self->network = std::move(*started);
    if (self->abandoned) self->network->close();
    self->network->describe(self->handle.details);
    co_return result<void>{};
  }

  void end_proxies() {
    std::shared_ptr<session_proxies> old;
    {
      std::lock_guard lock(mutex);
      old.swap(network);
    }
    // Not under the lock: the plugin may have something to report yet.
    if (old) old->close();
  }

  static asio::awaitable<result<void>> start(std::shared_ptr<impl> self, plan how, environment env,
                                             std::string init_path, session_proxies::source proxies) {
    co_await publish_type(self, sandbox_event_type::starting);
    const bool unconfined = how.unconfined;
    auto started = co_await start_enclosure(self, std::move(how), std::move(init_path));
    if (started) started = co_await start_proxies(self, unconfined, std::move(proxies));
    if (started && self->destroying) {
      started = error{error_code::illegal_state, "the session was destroyed while it was starting", ""};
    }
    if (!started) {
      self->end_proxies();
      self->drop_enclosure();
      co_await publish_reports(self, true);
      self->move_to(self->destroying ? sandbox_state::destroyed : sandbox_state::error, started.error());
      self->rest();
      co_return started.error();
    }
    if (self->network) self->network->add_to(env);
    self->env = std::move(env);
    self->move_to(sandbox_state::warm);
    self->background(watch_end(self));
    if (const auto limit = self->rules.spec.limits.wall_time_ms) {
      self->wall_time.expires_after(std::chrono::milliseconds(*limit));
      self->wall_time.async_wait([weak = std::weak_ptr(self)](boost::system::error_code e) {
        if (const auto alive = weak.lock(); alive && !e)
          alive->end_for(kill_reason::timeout, timeout_grace_ms);
      });
    }
    co_await publish_type(self, sandbox_event_type::ready);
    co_return result<void>{};
  }

  static asio::awaitable<result<void>> start_enclosure(std::shared_ptr<impl> self, plan how,
                                                       std::string init_path) {
    limit_context where{init_path, !how.unconfined};
    if (how.denials > 0) where.own_tasks += 3;  // whoever tells of them, which has three threads
    auto limits = limit_group::create(self->rules.spec.limits, self->rules.spec.session_id, where);
    if (!limits) co_return limits.error();
    {
      std::lock_guard lock(self->mutex);
      auto& details = self->handle.details;
      self->handle.backend = sandbox_backend_from_name(how.kind);
      details["plugin"] = how.plugin;
      details["workdir"] = self->rules.workdir;
      details["enforced"] = join_rule_bits(how.enforced);
      if (self->rules.waived != 0) details["without"] = join_rule_bits(self->rules.waived);
      for (auto& [limit, mechanism] : limits->details())
        details["limits." + limit] = mechanism;
    }
    std::function<void(std::string_view)> denied = [weak = std::weak_ptr(self)](std::string_view json) {
      if (const auto alive = weak.lock()) alive->report("denial", json);
    };
    auto started = co_await enclosure::start(self->strand, std::move(how), std::move(init_path),
                                             std::move(*limits), start_limit_ms, std::move(denied));
    if (!started) co_return hinting_at_limits(started.error(), self->rules.spec.limits);
    std::lock_guard lock(self->mutex);
    self->inside = std::move(*started);
    self->handle.details["pid"] = std::to_string(self->inside->launcher_pid());
    co_return result<void>{};
  }

  void rest() {
    settled.open();
    patience.cancel();
    std::lock_guard lock(mutex);
    at_rest = true;
  }

  void drop_enclosure() {
    std::shared_ptr<enclosure> old;
    {
      std::lock_guard lock(mutex);
      old.swap(inside);
    }
  }

  static asio::awaitable<void> shut_down(std::shared_ptr<enclosure> e, unsigned grace_ms) {
    co_await e->shutdown(grace_ms);
  }

  void end_for(kill_reason r, unsigned grace_ms) {
    if (finishing) return;
    claim(r);
    background(shut_down(inside, grace_ms));
  }

  // Follows the enclosure's end, whoever brought it about.
  static asio::awaitable<void> watch_end(std::shared_ptr<impl> self) {
    const auto ended = self->inside;
    co_await ended->ended();
    if (ended->limits().out_of_memory()) self->claim(kill_reason::oom);
    if (self->destroy_requested() && self->running > 0) self->claim(kill_reason::manual);
    self->finishing = true;
    self->wall_time.cancel();
    self->end_proxies();
    while (!self->open_commands.empty()) {
      const record_ptr record = *self->open_commands.begin();
      co_await record->done.wait();
      self->open_commands.erase(record);
    }
    // Whoever outlived its command has been killed by now; without a boundary it may have got away.
    std::vector<std::shared_ptr<output_pump>> left;
    for (auto& [id, record] : self->commands)
      left.insert(left.end(), record->pumps.begin(), record->pumps.end());
    for (auto& pump : left) {
      co_await pump->drained(output_patience_ms);
      pump->stop();
    }
    std::optional<kill_reason> why;
    {
      std::lock_guard lock(self->mutex);
      why = self->reason;
    }
    if (self->destroy_requested() && (!why || why == kill_reason::manual)) {
      self->move_to(sandbox_state::destroyed);
    } else {
      self->move_to(sandbox_state::error, end_error(why, ended->why_ended()));
    }
    co_await publish_reports(self, true);
    if (why && (why != kill_reason::manual || self->killed_running)) {
      sandbox_event event;
      event.type = sandbox_event_type::killed;
      event.reason = why;
      co_await publish(self, std::move(event));
    }
    self->drop_enclosure();
    self->rest();
  }

  bool destroy_requested() const {
    std::lock_guard lock(mutex);
    return destroying || abandoned;
  }

  // ---- commands ----

  result<void> accepts_commands() const {
    const sandbox_state now = state();
    if (!finishing && !destroying && inside && (now == sandbox_state::warm || now == sandbox_state::active))
      return {};
    const bool over = now == sandbox_state::destroyed || now == sandbox_state::error;
    const bool ending = !over && (finishing || destroying);
    return error{error_code::illegal_state,
                 "session " + quoted(rules.spec.session_id) + " takes no commands: " +
                     (ending ? "it is ending" : "its state is " + std::string(to_string(now))),
                 ""};
  }

  static asio::awaitable<result<exec_handle>> exec(std::shared_ptr<impl> self, exec_request request) {
    if (auto ok = self->accepts_commands(); !ok) co_return ok.error();
    const auto record = std::make_shared<command_record>(self->strand);
    self->open_commands.insert(record);
    auto handle = co_await start_command(self, record, std::move(request));
    if (!handle) {
      for (auto& pump : record->pumps)
        pump->stop();
      if (record->id != 0) co_return handle;  // it has started: follow_command is at its end
      self->open_commands.erase(record);
      record->done.open();
    }
    co_return handle;
  }

  static asio::awaitable<result<exec_handle>> start_command(std::shared_ptr<impl> self, record_ptr record,
                                                            exec_request request) {
    const bool captured = request.output == output_mode::captured;
    command c;
    c.argv = std::move(request.argv);
    environment env = self->env;
    for (const auto& [name, value] : request.extra_env)
      env[name] = value;
    if (self->network) self->network->append_to(env, request.extra_env);
    c.env.assign(env.begin(), env.end());
    c.cwd = std::move(request.cwd);
    if (c.cwd.empty()) c.cwd = self->rules.workdir;
    c.pty = request.pty;
    c.descriptors = std::move(request.descriptors);

    unique_fd readers[3];
    if (captured && !c.pty) {
      for (int number : {1, 2}) {
        if (c.descriptors[static_cast<std::size_t>(number)]) continue;
        auto p = make_pipe();
        if (!p) co_return p.error();
        readers[number] = std::move(p->reader);
        c.descriptors[static_cast<std::size_t>(number)] = std::move(p->writer);
      }
    }
    auto started = co_await self->inside->exec(std::move(c));
    if (!started) co_return started.error();

    record->id = started->id;
    self->commands.emplace(record->id, record);
    ++self->running;
    if (self->state() == sandbox_state::warm) self->move_to(sandbox_state::active);
    exec_handle handle{started->id, started->pid_inside, {}};
    result<void> pumping;
    auto pump = [&](unique_fd source, sandbox_event_type type) -> std::shared_ptr<output_pump> {
      auto p = self->start_pump(record, std::move(source), type);
      if (p) return *p;
      pumping = p.error();
      return nullptr;
    };
    if (started->pty_master && captured) {
      record->terminal = pump(std::move(started->pty_master), sandbox_event_type::stdout_data);
    } else {
      handle.pty_master = std::move(started->pty_master);
    }
    if (readers[1]) pump(std::move(readers[1]), sandbox_event_type::stdout_data);
    if (readers[2]) pump(std::move(readers[2]), sandbox_event_type::stderr_data);
    self->background(follow_command(self, self->inside, record));
    if (!pumping) {
      // Its output would be lost: it must not go on.
      [[maybe_unused]] const auto killed = co_await self->inside->signal(record->id, SIGKILL);
      co_return pumping.error();
    }
    co_return handle;
  }

  static asio::awaitable<void> follow_command(std::shared_ptr<impl> self, std::shared_ptr<enclosure> where,
                                              record_ptr record) {
    auto status = co_await where->wait(record->id);
    for (auto& pump : record->pumps)
      co_await pump->drained(output_patience_ms);
    if (!status) {
      if (where->limits().out_of_memory()) self->claim(kill_reason::oom);
      std::lock_guard lock(self->mutex);
      if (self->reason) status = exit_status{true, SIGKILL};
    }
    record->status = status;
    if (--self->running == 0 && self->state() == sandbox_state::active) self->move_to(sandbox_state::warm);
    sandbox_event event;
    event.type = sandbox_event_type::exit;
    event.exec_id = record->id;
    event.exit_code = (status ? *status : exit_status{true, SIGKILL}).code();
    co_await publish(self, std::move(event));
    std::erase_if(record->pumps, [](const auto& pump) { return pump->descriptor() < 0; });
    self->open_commands.erase(record);
    self->remember(record);
    record->done.open();
    if (!self->finishing && where->limits().out_of_memory()) self->end_for(kill_reason::oom, 0);
  }

  void remember(const record_ptr& record) {
    ended_commands.push_back(record->id);
    if (ended_commands.size() <= remembered_commands) return;
    commands.erase(ended_commands.front());
    ended_commands.pop_front();
  }

  result<record_ptr> find(std::uint64_t exec_id) const {
    const auto found = commands.find(exec_id);
    if (found != commands.end()) return found->second;
    return error{error_code::not_found, "there is no command " + std::to_string(exec_id), ""};
  }

  static asio::awaitable<result<exit_status>> wait(std::shared_ptr<impl> self, std::uint64_t exec_id) {
    const auto record = self->find(exec_id);
    if (!record) co_return record.error();
    co_await (*record)->done.wait();
    co_return *(*record)->status;
  }

  static asio::awaitable<result<void>> signal(std::shared_ptr<impl> self, std::uint64_t exec_id, int number) {
    const auto record = self->find(exec_id);
    if (!record) co_return record.error();
    const auto where = self->inside;
    if (!where) co_return error{error_code::illegal_state, "the session has ended", ""};
    co_return co_await where->signal(exec_id, number);
  }

  static asio::awaitable<result<void>> resize(std::shared_ptr<impl> self, std::uint64_t exec_id,
                                              window_size size) {
    const auto record = self->find(exec_id);
    if (!record) co_return record.error();
    const auto& terminal = (*record)->terminal;
    if (!terminal || terminal->descriptor() < 0) {
      co_return error{error_code::illegal_state,
                      "command " + std::to_string(exec_id) + " has no captured terminal", ""};
    }
    if (auto ok = check_size(size); !ok) co_return ok.error();
    winsize w{};
    w.ws_row = static_cast<unsigned short>(size.rows);
    w.ws_col = static_cast<unsigned short>(size.cols);
    if (::ioctl(terminal->descriptor(), TIOCSWINSZ, &w) < 0)
      co_return system_error("resize terminal", "", errno);
    co_return result<void>{};
  }

  static asio::awaitable<void> destroy(std::shared_ptr<impl> self, unsigned grace_ms) {
    {
      std::lock_guard lock(self->mutex);
      self->destroying = true;
    }
    if (const auto where = self->inside; where && !self->finishing) {
      if (self->running > 0) self->claim(kill_reason::manual);
      co_await where->shutdown(grace_ms);
    }
    self->patience.expires_after(std::chrono::milliseconds(subscriber_patience_ms));
    self->patience.async_wait([self](boost::system::error_code e) {
      if (!e) self->settled.open();
    });
    co_await self->settled.wait();
    self->move_to(sandbox_state::destroyed);
    self->rest();
  }
};

session::session(asio::any_io_executor strand, event_bus& bus, policy rules)
    : impl_(std::make_shared<impl>(std::move(strand), bus, std::move(rules))) {}

session::~session() {
  abandon();
}

void session::abandon() const noexcept {
  std::shared_ptr<enclosure> inside;
  std::shared_ptr<session_proxies> network;
  {
    std::lock_guard lock(impl_->mutex);
    impl_->abandoned = true;
    inside = impl_->inside;
    network = impl_->network;
  }
  if (inside) inside->kill(2000);
  if (network) network->close();
}

ccbox_status session::report(std::string_view type, std::string_view json) {
  return impl_->report(type, json);
}

bool session::at_rest() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->at_rest;
}

sandbox_handle session::handle() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->handle;
}

const policy& session::rules() const {
  return impl_->rules;
}

std::optional<kill_reason> session::killed() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->reason;
}

asio::awaitable<result<void>> session::start(plan how, environment env, std::string init_path,
                                             session_proxies::source proxies) {
  const auto self = impl_;
  co_return co_await asio::co_spawn(
      self->strand,
      impl::start(self, std::move(how), std::move(env), std::move(init_path), std::move(proxies)),
      asio::use_awaitable);
}

asio::awaitable<result<exec_handle>> session::exec(exec_request request) {
  const auto self = impl_;
  co_return co_await asio::co_spawn(self->strand, impl::exec(self, std::move(request)), asio::use_awaitable);
}

asio::awaitable<result<exit_status>> session::wait(std::uint64_t exec_id) {
  const auto self = impl_;
  co_return co_await asio::co_spawn(self->strand, impl::wait(self, exec_id), asio::use_awaitable);
}

asio::awaitable<result<void>> session::signal(std::uint64_t exec_id, int number) {
  const auto self = impl_;
  co_return co_await asio::co_spawn(self->strand, impl::signal(self, exec_id, number), asio::use_awaitable);
}

asio::awaitable<result<void>> session::resize(std::uint64_t exec_id, window_size size) {
  const auto self = impl_;
  co_return co_await asio::co_spawn(self->strand, impl::resize(self, exec_id, size), asio::use_awaitable);
}

asio::awaitable<void> session::destroy(unsigned grace_ms) {
  const auto self = impl_;
  co_await asio::co_spawn(self->strand, impl::destroy(self, grace_ms), asio::use_awaitable);
}

}  // namespace ccbox
