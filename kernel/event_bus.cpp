#include "event_bus.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/concurrent_channel.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "log.hpp"

namespace ccbox {

namespace asio = boost::asio;

namespace {

using strand = asio::strand<asio::any_io_executor>;

// Set once, on any thread; waited for by one coroutine, before or after.
class one_shot {
 public:
  explicit one_shot(const asio::any_io_executor& executor) : channel_(executor, 1) {}
  void set() { channel_.try_send(boost::system::error_code()); }
  asio::awaitable<void> wait() { co_await channel_.async_receive(asio::use_awaitable); }

 private:
  asio::experimental::concurrent_channel<void(boost::system::error_code)> channel_;
};

// A publish() that found no room in one queue or more.
struct publication {
  explicit publication(const asio::any_io_executor& executor) : room(executor) {}
  std::size_t queues_without_room = 0;
  one_shot room;
};

struct queued_event {
  sandbox_event event;
  std::size_t bytes = 0;
};

struct waiting_event {
  queued_event queued;
  std::shared_ptr<publication> of;
};

struct drain_wait {
  std::uint64_t target = 0;
  std::shared_ptr<one_shot> reached;
};

std::size_t bytes_of(const sandbox_event& event) {
  std::size_t bytes = sizeof(event) + event.session_id.size() + event.data.size();
  if (event.violation) {
    bytes += event.violation->action.size() + event.violation->target.size();
    if (event.violation->suggested_capability) bytes += event.violation->suggested_capability->size();
    if (event.violation->raw) bytes += event.violation->raw->size();
  }
  if (event.unreachable) bytes += event.unreachable->target.size() + event.unreachable->reason.size();
  return bytes;
}

}  // namespace

// Everything below is guarded by the one mutex of the bus, which its subscriptions share and outlive. What
// must not happen under it (waking others, calling or destroying what the subscriber owns) is collected in an
// `aftermath`.
struct event_bus::impl {
  using state_ptr = std::shared_ptr<subscription::state>;

  std::mutex mutex;
  bool closed = false;
  std::map<std::string, std::vector<state_ptr>> subscriptions;  // by session; "" of all sessions
  std::map<std::string, std::uint64_t> last_sequence;

  // Who hears of the session, in no particular order.
  std::vector<state_ptr> receivers_of(const std::string& session) const {
    std::vector<state_ptr> receivers;
    const auto add = [&](const std::string& key) {
      const auto found = subscriptions.find(key);
      if (found == subscriptions.end()) return;
      receivers.insert(receivers.end(), found->second.begin(), found->second.end());
    };
    add(session);
    if (!session.empty()) add({});
    return receivers;
  }

  static asio::awaitable<void> publish(std::shared_ptr<impl> bus, sandbox_event event);
};

struct event_bus::subscription::state : std::enable_shared_from_this<state> {
  state(std::shared_ptr<impl> b, asio::any_io_executor executor, std::string session, subscriber f,
        std::size_t most)
      : bus(std::move(b)),
        session_id(std::move(session)),
        limit(most),
        own_strand(asio::make_strand(executor)),
        fn(std::make_shared<subscriber>(std::move(f))) {}

  const std::shared_ptr<impl> bus;
  const std::string session_id;
  const std::size_t limit;
  std::optional<strand>
      own_strand;  // given up with the subscription: an executor must not outlive its context
  std::shared_ptr<subscriber> fn;

  std::deque<queued_event> queue;
  std::deque<waiting_event> waiting;  // first come, first served
  std::vector<drain_wait> drain_waits;
  std::size_t held_bytes = 0;  // of the queue and of the event being handled
  std::uint64_t accepted = 0;  // events ever queued
  std::uint64_t handled = 0;
  bool draining = false;  // a drain() is under way, or about to be
  bool handling = false;  // the subscriber is being called
  bool closing = false;   // the bus is gone: what is queued is the rest
  bool dead = false;

  struct aftermath {
    std::vector<std::shared_ptr<publication>> admitted;
    std::vector<std::shared_ptr<one_shot>> drained;
    std::vector<std::pair<strand, std::shared_ptr<state>>> to_start;
    std::deque<queued_event> dropped_queue;
    std::deque<waiting_event> dropped_waiting;
    std::shared_ptr<subscriber> dropped_fn;
    std::optional<strand> dropped_strand;

    aftermath() = default;
    aftermath(const aftermath&) = delete;
    aftermath& operator=(const aftermath&) = delete;
    ~aftermath() {
      for (const auto& who : admitted)
        who->room.set();
      for (const auto& who : drained)
        who->set();
      for (auto& [on, subscription] : to_start)
        start(on, drain_duty(std::move(subscription)));
    }
  };

  // Whoever holds it drains the queue. Destroyed undone, as with its io_context, it ends the subscription:
  // nobody would ever make room again.
  class drain_duty {
   public:
    explicit drain_duty(std::shared_ptr<state> of) : of_(std::move(of)) {}
    drain_duty(drain_duty&&) = default;
    drain_duty& operator=(drain_duty&&) = delete;
    ~drain_duty() {
      if (of_) of_->drain_abandoned();
    }
    state& of() const { return *of_; }
    void done() { of_.reset(); }

   private:
    std::shared_ptr<state> of_;
  };

  // Posted, so that a subscriber never runs inside a publisher's call.
  static void start(const strand& on, drain_duty duty) {
    asio::post(on, [on, duty = std::move(duty)]() mutable {
      asio::co_spawn(on, drain(std::move(duty)), [](std::exception_ptr failure) {
        if (failure)
          log_event(log_level::error, "event_drain", {{"what", "a drain ended with an exception"}});
      });
    });
  }

  bool has_room_for(std::size_t bytes) const { return held_bytes == 0 || held_bytes + bytes <= limit; }

  void admit(queued_event queued, aftermath& after) {
    held_bytes += queued.bytes;
    ++accepted;
    queue.push_back(std::move(queued));
    if (std::exchange(draining, true)) return;
    after.to_start.emplace_back(*own_strand, shared_from_this());
  }

  void offer(queued_event queued, std::shared_ptr<publication>& of, const asio::any_io_executor& publisher,
             aftermath& after) {
    if (dead) return;
    if (waiting.empty() && has_room_for(queued.bytes)) return admit(std::move(queued), after);
    if (!of) of = std::make_shared<publication>(publisher);
    ++of->queues_without_room;
    waiting.push_back({std::move(queued), of});
  }

  static void found_room(const std::shared_ptr<publication>& who, aftermath& after) {
    if (--who->queues_without_room == 0) after.admitted.push_back(who);
  }

  void admit_while_there_is_room(aftermath& after) {
    while (!waiting.empty() && has_room_for(waiting.front().queued.bytes)) {
      admit(std::move(waiting.front().queued), after);
      found_room(waiting.front().of, after);
      waiting.pop_front();
    }
  }

  // Past the limit, whether of one publication, whose publisher has stopped waiting by itself, or of all.
  void admit_anyway(const publication* of, aftermath& after) {
    for (auto it = waiting.begin(); it != waiting.end();) {
      if (of && it->of.get() != of) {
        ++it;
        continue;
      }
      admit(std::move(it->queued), after);
      if (!of) found_room(it->of, after);
      it = waiting.erase(it);
    }
  }

  void wake_drain_waits(aftermath& after) {
    std::erase_if(drain_waits, [&](const drain_wait& wait) {
      const bool reached = dead ? !handling : handled >= wait.target;
      if (reached) after.drained.push_back(wait.reached);
      return reached;
    });
  }

  void end(aftermath& after) {
    if (!std::exchange(dead, true)) {
      for (const auto& event : queue)
        held_bytes -= event.bytes;
      after.dropped_queue = std::exchange(queue, {});
      for (const auto& waiter : waiting)
        found_room(waiter.of, after);
      after.dropped_waiting = std::exchange(waiting, {});
      after.dropped_strand = std::exchange(own_strand, std::nullopt);
      if (const auto found = bus->subscriptions.find(session_id); found != bus->subscriptions.end()) {
        std::erase(found->second, shared_from_this());
        if (found->second.empty()) bus->subscriptions.erase(found);
      }
    }
    // A coroutine that is a lambda lives in its function object: that must outlast the call.
    if (!handling) after.dropped_fn = std::exchange(fn, nullptr);
    wake_drain_waits(after);
  }

  // The event handed out before is done with; the next one, or nothing: then the drain is over.
  std::optional<queued_event> next(std::size_t done_bytes) {
    aftermath after;
    const std::lock_guard lock(bus->mutex);
    if (std::exchange(handling, false)) {
      held_bytes -= done_bytes;
      ++handled;
    }
    if (dead) {
      draining = false;
      end(after);
      return std::nullopt;
    }
    admit_while_there_is_room(after);
    wake_drain_waits(after);
    if (queue.empty()) {
      draining = false;
      if (closing) end(after);
      return std::nullopt;
    }
    auto first = std::move(queue.front());
    queue.pop_front();
    handling = true;
    return first;
  }

  void end_now() {
    aftermath after;
    const std::lock_guard lock(bus->mutex);
    end(after);
  }

  void drain_abandoned() noexcept {
    aftermath after;
    const std::lock_guard lock(bus->mutex);
    draining = false;
    handling = false;
    end(after);
  }

  static asio::awaitable<void> drain(drain_duty duty);
  static asio::awaitable<void> wait_drained(std::shared_ptr<state> self);
};

asio::awaitable<void> event_bus::subscription::state::drain(drain_duty duty) {
  constexpr unsigned turn = 32;  // events in a row before others on the same thread get theirs
  state& self = duty.of();
  std::size_t done_bytes = 0;
  for (unsigned count = 1;; ++count) {
    auto queued = self.next(done_bytes);
    if (!queued) break;
    done_bytes = queued->bytes;
    std::optional<std::string> failure;
    try {
      co_await (*self.fn)(std::move(queued->event));
    } catch (const std::exception& e) {
      failure = e.what();
    } catch (...) {
      failure = "something that is no std::exception";
    }
    if (failure) {
      log_event(log_level::error, "subscriber_threw", {{"session", self.session_id}, {"what", *failure}});
      self.end_now();
    } else if (count % turn == 0) {
      co_await asio::post(asio::use_awaitable);
    }
  }
  duty.done();
}

asio::awaitable<void> event_bus::subscription::state::wait_drained(std::shared_ptr<state> self) {
  if (!self) co_return;
  const auto reached = std::make_shared<one_shot>(co_await asio::this_coro::executor);
  {
    const std::lock_guard lock(self->bus->mutex);
    if (self->dead ? !self->handling : self->handled == self->accepted) co_return;
    self->drain_waits.push_back({self->accepted, reached});
  }
  struct leave {
    state& of;
    const std::shared_ptr<one_shot>& who;
    ~leave() {
      const std::lock_guard lock(of.bus->mutex);
      std::erase_if(of.drain_waits, [this](const drain_wait& wait) { return wait.reached == who; });
    }
  } const leave_at_the_end{*self, reached};
  co_await reached->wait();
}

asio::awaitable<void> event_bus::impl::publish(std::shared_ptr<impl> bus, sandbox_event event) {
  using state = subscription::state;
  const auto executor = co_await asio::this_coro::executor;
  std::vector<state_ptr> receivers;
  {
    const std::lock_guard lock(bus->mutex);
    if (bus->closed) co_return;
    event.sequence = ++bus->last_sequence[event.session_id];
    receivers = bus->receivers_of(event.session_id);
  }
  if (receivers.empty()) co_return;

  const std::size_t bytes = bytes_of(event);
  std::vector<queued_event> copies(receivers.size() - 1, queued_event{event, bytes});
  copies.push_back({std::move(event), bytes});
  std::shared_ptr<publication> without_room;
  {
    state::aftermath after;
    const std::lock_guard lock(bus->mutex);
    for (std::size_t i = 0; i < receivers.size(); ++i)
      receivers[i]->offer(std::move(copies[i]), without_room, executor, after);
  }
  if (!without_room) co_return;

  // However the wait ends (cancelled, or destroyed with its io_context), the event is in the queues
  // afterwards.
  struct leave {
    impl& of;
    const std::vector<state_ptr>& receivers;
    const publication& who;
    ~leave() {
      state::aftermath after;
      const std::lock_guard lock(of.mutex);
      for (const auto& receiver : receivers)
        receiver->admit_anyway(&who, after);
    }
  } const leave_at_the_end{*bus, receivers, *without_room};
  co_await without_room->room.wait();
}

event_bus::event_bus() : impl_(std::make_shared<impl>()) {}

event_bus::~event_bus() {
  subscription::state::aftermath after;
  const std::lock_guard lock(impl_->mutex);
  impl_->closed = true;
  for (const auto& [session, subscriptions] : std::exchange(impl_->subscriptions, {})) {
    for (const auto& one : subscriptions) {
      one->admit_anyway(nullptr, after);
      one->closing = true;
      if (!one->draining) one->end(after);
    }
  }
}

event_bus::subscription event_bus::subscribe(asio::any_io_executor executor, std::string session_id,
                                             subscriber fn, std::size_t queue_limit_bytes) {
  subscription made;
  made.state_ = std::make_shared<subscription::state>(impl_, std::move(executor), std::move(session_id),
                                                      std::move(fn), queue_limit_bytes);
  const std::lock_guard lock(impl_->mutex);
  impl_->subscriptions[made.state_->session_id].push_back(made.state_);
  return made;
}

asio::awaitable<void> event_bus::publish(sandbox_event event) {
  return impl::publish(impl_, std::move(event));
}

std::function<asio::awaitable<void>(sandbox_event)> event_bus::publisher() const {
  return [bus = impl_](sandbox_event event) { return impl::publish(bus, std::move(event)); };
}

void event_bus::forget(const std::string& session_id) {
  const std::lock_guard lock(impl_->mutex);
  impl_->last_sequence.erase(session_id);
}

event_bus::subscription::subscription(subscription&&) noexcept = default;

event_bus::subscription& event_bus::subscription::operator=(subscription&& other) noexcept {
  if (this != &other) {
    cancel();
    state_ = std::move(other.state_);
  }
  return *this;
}

event_bus::subscription::~subscription() {
  cancel();
}

void event_bus::subscription::cancel() {
  if (state_) state_->end_now();
}

bool event_bus::subscription::active() const {
  if (!state_) return false;
  const std::lock_guard lock(state_->bus->mutex);
  return !state_->dead && !state_->closing;
}

std::size_t event_bus::subscription::queued_bytes() const {
  if (!state_) return 0;
  const std::lock_guard lock(state_->bus->mutex);
  return state_->held_bytes;
}

asio::awaitable<void> event_bus::subscription::drained() const {
  return state::wait_drained(state_);
}

}  // namespace ccbox
