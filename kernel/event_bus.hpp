// Delivers each session's events, in order, to any number of subscribers.
//
//  - stdout and stderr are never lost: when a subscriber's queue is full, publish() waits (the pump then stops
//    reading and the command blocks on its pipe). Other events wait in the same queue, so order holds.
//  - Memory is bounded per subscriber: queue_limit_bytes, one event of any size excepted when it is alone.
//  - A subscriber that throws is logged, unsubscribed, and harms nobody else.
//  - Unsubscribing (or destroying the subscription) releases a waiting publisher.
//
// Threads: every function may be called on any thread. A subscriber is called on its own strand of the executor it
// was subscribed with, one event at a time.
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
    bool active() const;                                // false after cancel or after the subscriber threw
    boost::asio::awaitable<void> drained() const;       // all that was published so far has been handled

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

  // Numbers the event and queues it for every subscriber, waiting for room where there is none. Publishes of one
  // session must not overlap (they run on its strand); those of different sessions may.
  boost::asio::awaitable<void> publish(sandbox_event event);

  // Forgets the session's numbering; its subscriptions still receive what is queued.
  void forget(const std::string& session_id);

 private:
  struct impl;
  std::shared_ptr<impl> impl_;
};

}  // namespace ccbox
