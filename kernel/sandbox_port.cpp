#include "sandbox_port.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <map>
#include <mutex>

#include "gate.hpp"
#include "log.hpp"

namespace ccbox {
namespace {

namespace asio = boost::asio;

error in_use(const std::string& id) {
  return {error_code::conflict, "session " + quoted(id) + " exists already", "choose another session id"};
}

}  // namespace

struct sandbox_port::impl : std::enable_shared_from_this<impl> {
  impl(asio::any_io_executor e, sandbox_context c, event_bus& b)
      : executor(std::move(e)), context(std::move(c)), bus(b) {}

  unsigned events = 0;  // our number with the registry

  const asio::any_io_executor executor;
  const sandbox_context context;
  event_bus& bus;
  std::mutex mutex;
  bool closed = false;
  std::map<std::string, std::shared_ptr<session>> sessions;

  // What the subscribers of a destroyed session still have to take stays theirs.
  void forget_destroyed() {
    std::vector<std::shared_ptr<session>> gone;  // let go of outside the lock
    std::lock_guard lock(mutex);
    for (auto it = sessions.begin(); it != sessions.end();) {
      if (it->second->at_rest() && it->second->handle().state == sandbox_state::destroyed) {
        bus.forget(it->first);
        gone.push_back(std::move(it->second));
        it = sessions.erase(it);
      } else {
        ++it;
      }
    }
  }

  // `taker` null: only asks.
  result<void> take_id(const std::string& id, const std::shared_ptr<session>& taker) {
    std::shared_ptr<session> old;  // let go of outside the lock
    std::lock_guard lock(mutex);
    if (closed) return error{error_code::illegal_state, "the sandbox port is shutting down", ""};
    const auto found = sessions.find(id);
    if (found != sessions.end() && !found->second->at_rest()) return in_use(id);
    if (!taker) return {};
    if (found != sessions.end()) {
      bus.forget(id);
      old = std::move(found->second);
    }
    sessions[id] = taker;
    return {};
  }

  // The launcher says what it could not do, the probe knows why.
  error explain(error e, const std::string& backend_name) {
    {
      std::lock_guard lock(mutex);
      if (closed) return e;
    }
    if (e.code == error_code::unenforceable || e.code == error_code::illegal_state) return e;
    const auto probe = context.plugins->diagnose(backend_name);
    if (!probe) return e;
    if (probe->available) {
      if (e.hint.empty()) e.hint = probe->hint;
      return e;
    }
    e.code = error_code::unavailable;
    e.what = backend_name + " is not available" + (probe->cause.empty() ? "" : " (" + probe->cause + ")") +
             (probe->note.empty() ? "" : ": " + probe->note) + "; " + e.what;
    e.hint = probe->hint;
    return e;
  }
};

sandbox_port::sandbox_port(asio::any_io_executor executor, sandbox_context context, event_bus& bus)
    : impl_(std::make_shared<impl>(std::move(executor), std::move(context), bus)) {
  const std::weak_ptr<impl> weak = impl_;
  impl_->events = impl_->context.plugins->on_plugin_event(
      [weak](std::string_view id, std::string_view type, std::string_view json) -> ccbox_status {
        const auto self = weak.lock();
        if (!self) return CCBOX_UNAVAILABLE;
        std::shared_ptr<session> found;
        {
          std::lock_guard lock(self->mutex);
          const auto at = self->sessions.find(std::string(id));
          if (at != self->sessions.end()) found = at->second;
        }
        return found ? found->report(type, json) : CCBOX_INVALID;
      });
}

sandbox_port::~sandbox_port() {
  impl_->context.plugins->end_plugin_events(impl_->events);
  std::map<std::string, std::shared_ptr<session>> left;
  {
    std::lock_guard lock(impl_->mutex);
    impl_->closed = true;
    left.swap(impl_->sessions);
  }
  for (const auto& [id, s] : left)
    s->abandon();
}

asio::awaitable<result<std::shared_ptr<session>>> sandbox_port::launch(sandbox_spec spec) {
  const auto self = impl_;
  const auto begun = std::chrono::steady_clock::now();
  self->forget_destroyed();
  if (auto valid = validate(spec); !valid) co_return valid.error();
  if (auto free = self->take_id(spec.session_id, nullptr); !free) co_return free.error();
  auto prepared = prepare(self->context, spec);
  if (!prepared) {
    log_event(log_level::warn, "launch_refused",
              {{"session", spec.session_id},
               {"code", to_string(prepared.error().code)},
               {"what", prepared.error().what}});
    co_return prepared.error();
  }
  const std::string backend_name = prepared->chosen->name();
  const std::shared_ptr<session> made(
      new session(asio::make_strand(self->executor), self->bus, std::move(prepared->rules)));
  if (auto added = self->take_id(spec.session_id, made); !added) co_return added.error();
  // A name of its own: g++ 12 destroys a temporary like this in a co_await expression twice.
  session_proxies::source proxies{prepared->proxies, self->context.egress.net_connect};
  const monitor_plugin* monitor = self->context.monitored ? self->context.plugins->find_monitor() : nullptr;
  const auto started = co_await made->start(std::move(prepared->how), std::move(prepared->env),
                                            self->context.init_path, std::move(proxies), monitor);
  const auto took =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begun);
  if (!started) {
    error e = self->explain(started.error(), backend_name);
    log_event(log_level::warn, "launch_failed",
              {{"session", spec.session_id},
               {"backend", backend_name},
               {"code", to_string(e.code)},
               {"what", e.what}});
    co_return e;
  }
  log_event(log_level::info, "launch",
            {{"session", spec.session_id}, {"backend", backend_name}, {"took_ms", took.count()}});
  co_return made;
}

std::shared_ptr<session> sandbox_port::find(const std::string& session_id) const {
  impl_->forget_destroyed();
  std::lock_guard lock(impl_->mutex);
  const auto found = impl_->sessions.find(session_id);
  return found == impl_->sessions.end() ? nullptr : found->second;
}

std::vector<sandbox_handle> sandbox_port::list() const {
  impl_->forget_destroyed();
  std::lock_guard lock(impl_->mutex);
  std::vector<sandbox_handle> out;
  for (const auto& [id, s] : impl_->sessions)
    out.push_back(s->handle());
  return out;
}

namespace {

asio::awaitable<void> destroy(std::shared_ptr<session> s, unsigned grace_ms) {
  co_await s->destroy(grace_ms);
}

// On a strand of its own, which is what the gate needs.
asio::awaitable<void> destroy_all(std::vector<std::shared_ptr<session>> sessions, unsigned grace_ms) {
  const auto strand = co_await asio::this_coro::executor;
  gate all_done(strand);
  std::size_t left = sessions.size();
  for (const auto& s : sessions) {
    asio::co_spawn(strand, destroy(s, grace_ms), [&](std::exception_ptr failure) {
      if (failure) log_event(log_level::error, "session_destroy");
      if (--left == 0) all_done.open();
    });
  }
  if (left > 0) co_await all_done.wait();
}

}  // namespace

asio::awaitable<void> sandbox_port::shutdown(unsigned grace_ms) {
  const auto self = impl_;
  std::vector<std::shared_ptr<session>> left;
  {
    std::lock_guard lock(self->mutex);
    self->closed = true;
    for (const auto& [id, s] : self->sessions)
      left.push_back(s);
  }
  co_await asio::co_spawn(asio::any_io_executor(asio::make_strand(self->executor)),
                          destroy_all(std::move(left), grace_ms), asio::use_awaitable);
  self->forget_destroyed();
}

}  // namespace ccbox
