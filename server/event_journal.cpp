#include "event_journal.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <deque>
#include <list>
#include <map>
#include <set>

namespace ccbox::server {

namespace asio = boost::asio;

namespace {

constexpr std::size_t entry_overhead = 256;

std::size_t weight_of(const sandbox_event& event) {
  std::size_t bytes = entry_overhead + event.data.size();
  if (event.violation) bytes += event.violation->target.size() + event.violation->raw.value_or("").size();
  return bytes;
}

// Wakes every coroutine that waits for something to have changed. One thread.
class condition {
 public:
  explicit condition(const asio::any_io_executor& executor)
      : timer_(executor, asio::steady_timer::time_point::max()) {}
  asio::awaitable<void> wait() { co_await timer_.async_wait(asio::as_tuple(asio::use_awaitable)); }
  void notify() { timer_.cancel(); }

 private:
  asio::steady_timer timer_;
};

struct session_record {
  std::deque<journal_entry_ptr> entries;
  std::size_t bytes = 0;
  std::uint64_t dropped_to = 0;           // the sequence of the last one that was dropped
  std::uint64_t dropped_to_position = 0;  // and its position
  bool ended = false;
  bool replaced = false;  // by a new session of the same id
  event_bus::subscription subscription;
};

}  // namespace

struct event_journal::reader::state {
  explicit state(const asio::any_io_executor& executor) : news(executor) {}
  std::weak_ptr<event_journal::impl> journal;
  std::shared_ptr<session_record> only;  // null: all
  std::uint64_t taken = 0;               // positions up to here are
  std::uint64_t answered = 0;            // given out by next(), and taken with the next one
  std::uint64_t missing = 0;
  bool stopped = false;
  condition news;
};

struct event_journal::impl : std::enable_shared_from_this<impl> {
  impl(asio::any_io_executor e, event_bus& b, journal_limits l)
      : executor(std::move(e)), bus(b), limits(l), taken(executor) {}

  const asio::any_io_executor executor;
  event_bus& bus;
  const journal_limits limits;
  std::uint64_t last_position = 0;
  std::map<std::string, std::shared_ptr<session_record>> sessions;
  std::deque<std::shared_ptr<session_record>> ended;  // oldest first
  std::set<reader::state*> readers;
  condition taken;  // a reader has taken something, or has gone

  bool needed(const session_record& record, const journal_entry& entry) const {
    return std::any_of(readers.begin(), readers.end(), [&](const reader::state* r) {
      return !r->stopped && (!r->only || r->only.get() == &record) && r->taken < entry.position;
    });
  }

  void notify_readers(const session_record& record) {
    for (auto* r : readers)
      if (!r->only || r->only.get() == &record) r->news.notify();
  }

  static asio::awaitable<void> append(std::weak_ptr<impl> journal, std::weak_ptr<session_record> followed,
                                      sandbox_event event) {
    const auto self = journal.lock();
    const auto record = followed.lock();
    if (!self || !record) co_return;
    const auto weight = weight_of(event);
    while (!record->entries.empty() && record->bytes + weight > self->limits.session_bytes &&
           !record->replaced) {
      const auto& oldest = *record->entries.front();
      if (self->needed(*record, oldest)) {
        co_await self->taken.wait();
        continue;
      }
      record->bytes -= weight_of(oldest.event);
      record->dropped_to = oldest.event.sequence;
      record->dropped_to_position = oldest.position;
      record->entries.pop_front();
    }
    if (record->replaced) co_return;
    auto made = std::make_shared<journal_entry>();
    made->position = ++self->last_position;
    made->event = std::move(event);
    record->bytes += weight;
    record->entries.push_back(std::move(made));
    self->notify_readers(*record);
  }

  void drop(const std::string& id) {
    const auto found = sessions.find(id);
    if (found == sessions.end()) return;
    const auto record = std::move(found->second);
    sessions.erase(found);
    std::erase(ended, record);
    record->replaced = record->ended = true;
    record->subscription.cancel();
    notify_readers(*record);
    taken.notify();
  }

  void collect(const session_record& record, std::uint64_t after, std::vector<journal_entry_ptr>& out) const {
    auto at = std::upper_bound(
        record.entries.begin(), record.entries.end(), after,
        [](std::uint64_t position, const journal_entry_ptr& e) { return position < e->position; });
    out.insert(out.end(), at, record.entries.end());
  }
};

event_journal::event_journal(asio::any_io_executor executor, event_bus& bus, journal_limits limits)
    : impl_(std::make_shared<impl>(std::move(executor), bus, limits)) {}

event_journal::~event_journal() {
  while (!impl_->sessions.empty())
    impl_->drop(impl_->sessions.begin()->first);
}

void event_journal::follow(const std::string& session_id) {
  impl_->drop(session_id);
  const auto record = std::make_shared<session_record>();
  impl_->sessions[session_id] = record;
  // The record owns the subscription, so that the subscriber must not own the record.
  record->subscription = impl_->bus.subscribe(
      impl_->executor, session_id,
      [journal = std::weak_ptr(impl_), weak = std::weak_ptr(record)](sandbox_event event) {
        return impl::append(journal, weak, std::move(event));
      });
}

asio::awaitable<void> event_journal::finish(const std::string& session_id) {
  const auto self = impl_;
  const auto found = self->sessions.find(session_id);
  if (found == self->sessions.end()) co_return;
  const auto record = found->second;
  co_await record->subscription.drained();
  if (record->ended) co_return;
  record->ended = true;
  record->subscription.cancel();
  self->notify_readers(*record);
  self->ended.push_back(record);
  while (self->ended.size() > self->limits.ended_sessions) {
    const auto oldest = self->ended.front();
    for (const auto& [id, each] : self->sessions) {
      if (each != oldest) continue;
      self->drop(std::string(id));
      break;
    }
  }
}

void event_journal::forget(const std::string& session_id) {
  impl_->drop(session_id);
}

result<event_journal::reader> event_journal::read(const std::string& session_id,
                                                  std::optional<std::uint64_t> after) {
  const auto found = impl_->sessions.find(session_id);
  if (found == impl_->sessions.end())
    return error{error_code::not_found, "there is no session " + quoted(session_id),
                 "GET /v1/sandboxes lists them"};
  const auto& record = *found->second;
  auto made = std::make_shared<reader::state>(impl_->executor);
  made->journal = impl_;
  made->only = found->second;
  made->taken = impl_->last_position;
  if (after) {
    made->taken = record.dropped_to_position;
    for (const auto& entry : record.entries)
      if (entry->event.sequence <= *after) made->taken = entry->position;
    if (*after < record.dropped_to) made->missing = record.dropped_to - *after;
  }
  impl_->readers.insert(made.get());
  return reader(std::move(made));
}

event_journal::reader event_journal::read_all(std::optional<std::uint64_t> after) {
  auto made = std::make_shared<reader::state>(impl_->executor);
  made->journal = impl_;
  made->taken = std::min(after.value_or(impl_->last_position), impl_->last_position);
  if (after) {
    std::vector<journal_entry_ptr> there;
    for (const auto& [id, record] : impl_->sessions)
      impl_->collect(*record, made->taken, there);
    made->missing = impl_->last_position - made->taken - there.size();
  }
  impl_->readers.insert(made.get());
  return reader(std::move(made));
}

event_journal::reader::reader(std::shared_ptr<state> s) : state_(std::move(s)) {}
event_journal::reader::reader(reader&&) noexcept = default;
event_journal::reader& event_journal::reader::operator=(reader&&) noexcept = default;

event_journal::reader::~reader() {
  if (!state_) return;
  state_->stopped = true;
  if (const auto journal = state_->journal.lock()) {
    journal->readers.erase(state_.get());
    journal->taken.notify();
  }
}

asio::awaitable<std::vector<journal_entry_ptr>> event_journal::reader::next() {
  const auto self = state_;
  std::vector<journal_entry_ptr> out;
  const auto journal = self->journal.lock();
  if (!journal) co_return out;
  self->taken = std::max(self->taken, self->answered);
  journal->taken.notify();
  while (!self->stopped) {
    if (self->only) {
      journal->collect(*self->only, self->taken, out);
    } else {
      for (const auto& [id, record] : journal->sessions)
        journal->collect(*record, self->taken, out);
      std::sort(out.begin(), out.end(),
                [](const auto& a, const auto& b) { return a->position < b->position; });
    }
    if (!out.empty()) {
      self->answered = out.back()->position;
      break;
    }
    if (self->only && self->only->ended) break;
    co_await self->news.wait();
  }
  co_return out;
}

std::uint64_t event_journal::reader::missing() const {
  return state_->missing;
}

void event_journal::reader::stop() {
  state_->stopped = true;
  state_->news.notify();
  if (const auto journal = state_->journal.lock()) journal->taken.notify();
}

}  // namespace ccbox::server
