// Delivers each session's events, in order, to any number of subscribers.
//
//  - stdout and stderr are never lost: when a subscriber's queue is full, publish() waits (the pump then
//    stops reading and the command blocks on its pipe). Other events wait in the same queue, so order holds.
//  - Memory is bounded per subscriber: queue_limit_bytes for what is queued and being handled, one event of
//    any size excepted when it is alone. Publishers that wait hold one event each.
//  - A subscriber that throws is logged, unsubscribed, and harms nobody else.
//  - Unsubscribing (or destroying the subscription) drops its queue and releases a waiting publisher. So does
//    destroying the bus, but then what was published before is still delivered.
//  - A publish() that is cancelled while it waits throws operation_aborted; its event is delivered all the
//    same, past the limit.
//
// Threads: every function may be called on any thread. A subscriber is called on its own strand of the
// executor it was subscribed with, one event at a time, never inside publish(). It must not wait for its own
// subscription, neither by drained() nor by publishing what it would receive itself.
//
// Lifetime: a call that is in progress on another thread may outlast cancel(); drained() then waits for its
// end, and no other starts. The subscriber is destroyed after its last call. Execution contexts outlive the
// subscriptions made with them, except that one may be destroyed with events still in the queue: that ends
// the subscription.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "sandbox_event.hpp"

namespace ccbox {

class event_bus {
 public:
  // May suspend: a slow subscriber is one whose awaitable takes long.
  using subscriber = std::function<boost::asio::awaitable<void>(sandbox_event)>;

  class subscription {  // unsubscribes when destroyed
   public:
    subscription() = default;
    subscription(subscription&&) noexcept;
    subscription& operator=(subscription&&) noexcept;
    ~subscription();
    void cancel();
    bool active() const;  // false after cancel, after the subscriber threw, and when the bus is gone
    // Waits until all that was queued before the call has been handled, or the last call of a subscription
    // that ended has returned.
    boost::asio::awaitable<void> drained() const;
    std::size_t queued_bytes() const;  // what the limit counts

   private:
    friend class event_bus;
    struct state;
    std::shared_ptr<state> state_;
  };

  event_bus();
  ~event_bus();
  event_bus(const event_bus&) = delete;
  event_bus& operator=(const event_bus&) = delete;

  // session_id empty: events of all sessions.
  subscription subscribe(boost::asio::any_io_executor executor, std::string session_id, subscriber fn,
                         std::size_t queue_limit_bytes = 1 << 20);

  // Numbers the event and queues it for every subscriber, waiting for room where there is none. Publishes of
  // one session must not overlap (they run on its strand); those of different sessions may.
  boost::asio::awaitable<void> publish(sandbox_event event);
  // The same for those who may outlive the bus: once it is gone, nothing happens.
  std::function<boost::asio::awaitable<void>(sandbox_event)> publisher() const;

  // Forgets the session's numbering; its subscriptions still receive what is queued.
  void forget(const std::string& session_id);

 private:
  struct impl;
  std::shared_ptr<impl> impl_;
};

}  // namespace ccbox
