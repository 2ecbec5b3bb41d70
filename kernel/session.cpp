#include "session.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>

#include "log.hpp"
#include "session_errors.hpp"
#include "session_impl.hpp"

namespace ccbox {

namespace asio = boost::asio;

namespace {

constexpr unsigned start_limit_ms = 10000;
constexpr unsigned timeout_grace_ms = 1000;  // between TERM and KILL when a limit ends the session
constexpr unsigned subscriber_patience_ms =
    5000;  // for subscribers to take the last events before destroy() returns

}  // namespace

session::impl::impl(asio::any_io_executor s, const event_bus& bus, policy r)
    : strand(s),
      rules(std::move(r)),
      events(s, bus, rules.spec.session_id),
      wall_time(s),
      patience(s),
      settled(s) {
  handle.session_id = rules.spec.session_id;
}

void session::impl::start_reports() {
  const auto to = [weak = weak_from_this()](sandbox_event event) {
    return publish_report(weak, std::move(event));
  };
  reports = std::make_shared<session_reports>(strand, rules, to);
}

asio::awaitable<void> session::impl::publish_report(std::weak_ptr<impl> session, sandbox_event event) {
  if (const auto self = session.lock()) co_await publish(self, std::move(event));
}

sandbox_state session::impl::state() const {
  std::lock_guard lock(mutex);
  return handle.state;
}

void session::impl::move_to(sandbox_state to, std::optional<error> failure) {
  std::lock_guard lock(mutex);
  if (handle.state == to) return;
  if (auto ok = transition(handle, to); !ok) {
    log_event(log_level::error, "session_state", {{"session", handle.session_id}, {"what", ok.error().what}});
    return;
  }
  if (to == sandbox_state::error) handle.failure = std::move(failure);
}

void session::impl::claim(kill_reason r) {
  const bool oom = inside && inside->limits().out_of_memory();
  std::lock_guard lock(mutex);
  if (reason || finishing) return;
  reason = oom ? kill_reason::oom : r;
  killed_running = running > 0;
}

void session::impl::background(asio::awaitable<void> work) {
  asio::co_spawn(strand, std::move(work), [self = shared_from_this()](std::exception_ptr failure) {
    if (failure) log_event(log_level::error, "session_coroutine", {{"session", self->rules.spec.session_id}});
  });
}

asio::awaitable<void> session::impl::publish(std::shared_ptr<impl> self, sandbox_event event) {
  co_await self->events.publish(std::move(event));
}

asio::awaitable<void> session::impl::publish_type(std::shared_ptr<impl> self, sandbox_event_type type) {
  sandbox_event event;
  event.type = type;
  co_await publish(self, std::move(event));
}

asio::awaitable<result<void>> session::impl::start(std::shared_ptr<impl> self, plan how, environment env,
                                                   std::string init_path, session_proxies::source proxies,
                                                   const monitor_plugin* monitor) {
  co_await publish_type(self, sandbox_event_type::starting);
  const bool unconfined = how.unconfined;
  self->reports->watch_with(monitor, how);
  auto started = co_await start_enclosure(self, std::move(how), std::move(init_path));
  if (started) started = co_await start_proxies(self, unconfined, std::move(proxies));
  if (started && self->destroying) {
    started = error{error_code::illegal_state, "the session was destroyed while it was starting", ""};
  }
  if (!started) {
    self->end_proxies();
    self->drop_enclosure();
    co_await session_reports::publish(self->reports, true);
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
      if (const auto alive = weak.lock(); alive && !e) alive->end_for(kill_reason::timeout, timeout_grace_ms);
    });
  }
  co_await publish_type(self, sandbox_event_type::ready);
  co_return result<void>{};
}

asio::awaitable<result<void>> session::impl::start_enclosure(std::shared_ptr<impl> self, plan how,
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
    if (const auto alive = weak.lock()) alive->reports->report("denial", json);
  };
  auto started = co_await enclosure::start(self->strand, std::move(how), std::move(init_path),
                                           std::move(*limits), start_limit_ms, std::move(denied));
  if (!started) co_return hinting_at_limits(started.error(), self->rules.spec.limits);
  std::lock_guard lock(self->mutex);
  self->inside = std::move(*started);
  self->handle.details["pid"] = std::to_string(self->inside->launcher_pid());
  co_return result<void>{};
}

asio::awaitable<result<void>> session::impl::start_proxies(std::shared_ptr<impl> self, bool unconfined,
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

void session::impl::end_proxies() {
  std::shared_ptr<session_proxies> old;
  {
    std::lock_guard lock(mutex);
    old.swap(network);
  }
  // Not under the lock: the plugin may have something to report yet.
  if (old) old->close();
}

void session::impl::rest() {
  settled.open();
  patience.cancel();
  std::lock_guard lock(mutex);
  at_rest = true;
}

void session::impl::drop_enclosure() {
  std::shared_ptr<enclosure> old;
  {
    std::lock_guard lock(mutex);
    old.swap(inside);
  }
}

asio::awaitable<void> session::impl::shut_down(std::shared_ptr<enclosure> e, unsigned grace_ms) {
  co_await e->shutdown(grace_ms);
}

void session::impl::end_for(kill_reason r, unsigned grace_ms) {
  if (finishing) return;
  claim(r);
  background(shut_down(inside, grace_ms));
}

asio::awaitable<void> session::impl::watch_end(std::shared_ptr<impl> self) {
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
  co_await session_reports::publish(self->reports, true);
  if (why && (why != kill_reason::manual || self->killed_running)) {
    sandbox_event event;
    event.type = sandbox_event_type::killed;
    event.reason = why;
    co_await publish(self, std::move(event));
  }
  self->drop_enclosure();
  self->rest();
}

bool session::impl::destroy_requested() const {
  std::lock_guard lock(mutex);
  return destroying || abandoned;
}

asio::awaitable<void> session::impl::destroy(std::shared_ptr<impl> self, unsigned grace_ms) {
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

session::session(asio::any_io_executor strand, event_bus& bus, policy rules)
    : impl_(std::make_shared<impl>(std::move(strand), bus, std::move(rules))) {
  impl_->start_reports();
}

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
  impl_->reports->abandon();
}

ccbox_status session::report(std::string_view type, std::string_view json) {
  return impl_->reports->report(type, json);
}

void session::observe(std::uint64_t exec_id, std::string_view bytes) {
  impl_->reports->observe(exec_id, bytes);
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
                                             session_proxies::source proxies, const monitor_plugin* monitor) {
  const auto self = impl_;
  co_return co_await asio::co_spawn(
      self->strand,
      impl::start(self, std::move(how), std::move(env), std::move(init_path), std::move(proxies), monitor),
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
