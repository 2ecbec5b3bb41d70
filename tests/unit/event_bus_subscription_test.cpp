// How subscriptions, publishers and the bus itself end, and that nobody waits for the dead.
#include "event_bus.hpp"

#include <doctest/doctest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <stdexcept>
#include <vector>

#include "support/bus_bench.hpp"

using namespace ccbox;
using namespace ccbox::test;

namespace {

// One subscriber that takes an event whenever the test lets it.
struct held_up {
  asio::io_context io;
  event_bus bus;
  collector slow;
  event_bus::subscription subscription;

  held_up() { slow.door = std::make_shared<gate>(io.get_executor()); }
  void subscribe(std::size_t limit_bytes = 1 << 20) {
    subscription = bus.subscribe(io.get_executor(), "s1", slow.fn(), limit_bytes);
  }
};

}  // namespace

TEST_CASE("a subscriber that throws is unsubscribed and harms nobody else") {
  asio::io_context io;
  event_bus bus;
  collector before, after;
  int calls = 0, more_calls = 0, rude_calls = 0;
  const auto first = bus.subscribe(io.get_executor(), "s1", before.fn());
  auto thrower = [&](sandbox_event) -> asio::awaitable<void> {
    if (++calls == 2) throw std::runtime_error("no more\n\x1b[31m");
    co_return;
  };
  const auto broken = bus.subscribe(io.get_executor(), "s1", thrower, 1);
  const auto at_the_call =
      bus.subscribe(io.get_executor(), "s1", [&](sandbox_event) -> asio::awaitable<void> {
        ++more_calls;
        throw std::logic_error("before the coroutine");
      });
  const auto rude = bus.subscribe(io.get_executor(), "s1", [&](sandbox_event) -> asio::awaitable<void> {
    if (++rude_calls > 0) throw 42;
    co_return;
  });
  const auto empty = bus.subscribe(io.get_executor(), "s1", {});
  const auto last = bus.subscribe(io.get_executor(), "s1", after.fn());
  flag published;
  spawn(io, published, publish_all(bus, "s1", "abcdef"));
  settle(io);
  CHECK(published.done);
  CHECK(before.text() == "abcdef");
  CHECK(after.text() == "abcdef");
  CHECK(calls == 2);
  CHECK(more_calls == 1);
  CHECK(rude_calls == 1);
  CHECK(!broken.active());
  CHECK(!at_the_call.active());
  CHECK(!rude.active());
  CHECK(!empty.active());
  CHECK(first.active());
  CHECK(broken.queued_bytes() == 0);
}

TEST_CASE("cancelling a full subscription releases the publisher and nothing more is delivered") {
  asio::io_context io;
  event_bus bus;
  collector stuck, other;
  stuck.door = std::make_shared<gate>(io.get_executor());
  auto subscription = bus.subscribe(io.get_executor(), "s1", stuck.fn(), 1);
  const auto second = bus.subscribe(io.get_executor(), "s1", other.fn());
  flag published;
  spawn(io, published, publish_all(bus, "s1", "abc"));
  settle(io);
  REQUIRE(!published.done);
  subscription.cancel();
  CHECK(!subscription.active());
  settle(io);
  CHECK(published.done);
  CHECK(!published.failure);
  CHECK(other.text() == "abc");
  stuck.door->open(3);
  settle(io);
  CHECK(stuck.entered == 1);
  CHECK(subscription.queued_bytes() == 0);
  subscription.cancel();  // again does nothing
}

TEST_CASE("destroying or replacing a subscription releases the publisher too") {
  asio::io_context io;
  event_bus bus;
  collector stuck;
  stuck.door = std::make_shared<gate>(io.get_executor());
  flag published;
  {
    auto subscription = bus.subscribe(io.get_executor(), "s1", stuck.fn(), 1);
    auto moved = std::move(subscription);
    spawn(io, published, publish_all(bus, "s1", "ab"));
    settle(io);
    CHECK(!published.done);
    CHECK(moved.active());
  }
  settle(io);
  CHECK(published.done);

  auto replaced = bus.subscribe(io.get_executor(), "s1", stuck.fn(), 1);
  flag again;
  spawn(io, again, publish_all(bus, "s1", "cd"));
  settle(io);
  CHECK(!again.done);
  replaced = {};
  settle(io);
  CHECK(again.done);
  CHECK(!replaced.active());
}

TEST_CASE("a subscriber may cancel itself in its own call") {
  asio::io_context io;
  event_bus bus;
  event_bus::subscription subscription;
  int calls = 0;
  auto once = [&](sandbox_event) -> asio::awaitable<void> {
    ++calls;
    subscription.cancel();
    co_return;
  };
  subscription = bus.subscribe(io.get_executor(), "s1", once);
  flag published;
  spawn(io, published, publish_all(bus, "s1", "abc"));
  settle(io);
  CHECK(published.done);
  CHECK(calls == 1);
}

TEST_CASE("destroying the bus releases publishers and what was published is still delivered") {
  asio::io_context io;
  auto bus = std::make_unique<event_bus>();
  collector slow, idle;
  slow.door = std::make_shared<gate>(io.get_executor());
  const auto subscription = bus->subscribe(io.get_executor(), "", slow.fn(), 1);
  const auto unused = bus->subscribe(io.get_executor(), "s9", idle.fn(), 1);
  flag first, second;
  spawn(io, first, publish_all(*bus, "s1", "ab"));
  spawn(io, second, publish_all(*bus, "s2", "c"));
  settle(io);
  CHECK(!first.done);
  CHECK(!second.done);
  bus.reset();
  CHECK(!subscription.active());
  CHECK(!unused.active());
  settle(io);
  CHECK(first.done);
  CHECK(second.done);
  CHECK(!first.failure);
  slow.door->open(3);
  settle(io);
  CHECK(slow.events.size() == 3);
  flag drained;
  spawn(io, drained, subscription.drained());
  settle(io);
  CHECK(drained.done);
}

TEST_CASE_FIXTURE(held_up,
                  "a publish that is cancelled while it waits throws and its event arrives in its place") {
  subscribe(1);
  flag first, second;
  spawn(io, first, publish_all(bus, "s1", "a"));
  settle(io);
  asio::cancellation_signal signal;
  asio::co_spawn(io, publish_all(bus, "s1", "bX"),
                 asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr f) {
                   second.done = true;
                   second.failure = f;
                 }));
  settle(io);
  CHECK(!second.done);
  signal.emit(asio::cancellation_type::terminal);
  settle(io);
  REQUIRE(second.done);
  REQUIRE(second.failure);
  try {
    std::rethrow_exception(second.failure);
  } catch (const boost::system::system_error& e) {
    CHECK((e.code() == asio::error::operation_aborted ||
           e.code() == asio::experimental::error::channel_cancelled));
  }
  flag third;
  spawn(io, third, publish_all(bus, "s1", "c"));
  slow.door->open(3);
  settle(io);
  CHECK(third.done);
  CHECK(slow.text() == "abc");
  CHECK(slow.events[2].sequence == 3);
}

TEST_CASE_FIXTURE(held_up, "a timer can end a publish that waits") {
  using namespace asio::experimental::awaitable_operators;
  subscribe(1);
  flag first, second;
  spawn(io, first, publish_all(bus, "s1", "a"));
  settle(io);
  asio::steady_timer timer(io, std::chrono::milliseconds(1));
  auto work = [&]() -> asio::awaitable<void> {
    co_await (bus.publish(output("s1", "b")) || timer.async_wait(asio::use_awaitable));
  };
  spawn(io, second, work());
  io.restart();
  const auto give_up = std::chrono::steady_clock::now() + limit;
  while (!second.done && io.run_one_until(give_up) > 0) {
  }
  CHECK(second.done);
  slow.door->open(2);
  settle(io);
  CHECK(slow.text() == "ab");
}

TEST_CASE_FIXTURE(held_up, "drained waits for what was published before and not for what comes after") {
  subscribe();
  flag idle, drained, published;
  spawn(io, idle, subscription.drained());
  settle(io);
  CHECK(idle.done);
  spawn(io, published, publish_all(bus, "s1", "ab"));
  settle(io);
  spawn(io, drained, subscription.drained());
  settle(io);
  flag later;
  spawn(io, later, publish_all(bus, "s1", "c"));
  slow.door->open();
  settle(io);
  CHECK(!drained.done);
  slow.door->open();
  settle(io);
  CHECK(drained.done);
  CHECK(slow.text() == "ab");
  flag nothing;
  spawn(io, nothing, event_bus::subscription().drained());
  settle(io);
  CHECK(nothing.done);
}

TEST_CASE("drained after cancel waits for the call in progress and then the subscriber is destroyed") {
  asio::io_context io;
  event_bus bus;
  auto slow = std::make_shared<collector>();
  const std::weak_ptr<collector> watch = slow;
  const auto door = std::make_shared<gate>(io.get_executor());
  slow->door = door;
  auto subscription = bus.subscribe(io.get_executor(), "s1",
                                    [slow](sandbox_event event) { return slow->take(std::move(event)); });
  slow.reset();
  flag published, drained;
  spawn(io, published, publish_all(bus, "s1", "abc"));
  settle(io);
  subscription.cancel();
  spawn(io, drained, subscription.drained());
  settle(io);
  CHECK(!drained.done);
  CHECK(!watch.expired());
  door->open();
  settle(io);
  CHECK(drained.done);
  CHECK(watch.expired());
}

TEST_CASE("cancel destroys an idle subscriber at once") {
  asio::io_context io;
  event_bus bus;
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = owned;
  auto subscription =
      bus.subscribe(io.get_executor(), "s1", [owned](sandbox_event) -> asio::awaitable<void> { co_return; });
  owned.reset();
  CHECK(!watch.expired());
  subscription.cancel();
  CHECK(watch.expired());
}

TEST_CASE("a subscriber is never called inside publish") {
  asio::io_context io;
  event_bus bus;
  bool inside = false, called_inside = false, called = false;
  const auto subscription =
      bus.subscribe(io.get_executor(), "s1", [&](sandbox_event) -> asio::awaitable<void> {
        called = true;
        called_inside = inside;
        co_return;
      });
  auto work = [&]() -> asio::awaitable<void> {
    inside = true;
    co_await bus.publish(output("s1", "a"));
    inside = false;
  };
  flag published;
  spawn(io, published, work());
  settle(io);
  CHECK(called);
  CHECK(!called_inside);
}

TEST_CASE("destroying a subscriber's io_context ends its subscription and releases the publisher") {
  for (const bool call_started : {true, false}) {
    CAPTURE(call_started);
    asio::io_context publishers;
    event_bus bus;
    event_bus::subscription subscription;
    collector stuck;
    flag published, drained;
    {
      asio::io_context readers;
      stuck.door = std::make_shared<gate>(readers.get_executor());
      subscription = bus.subscribe(readers.get_executor(), "s1", stuck.fn(), 1);
      spawn(publishers, published, publish_all(bus, "s1", "abc"));
      settle(publishers);
      if (call_started) settle(readers);
      CHECK(stuck.entered == (call_started ? 1 : 0));
      CHECK(!published.done);
      spawn(publishers, drained, subscription.drained());
      settle(publishers);
      stuck.door.reset();
    }
    CHECK(!subscription.active());
    settle(publishers);
    CHECK(published.done);
    CHECK(drained.done);
  }
}

TEST_CASE("destroying a publisher's io_context loses no event that it was publishing") {
  asio::io_context readers;
  event_bus bus;
  collector slow;
  slow.door = std::make_shared<gate>(readers.get_executor());
  const auto subscription = bus.subscribe(readers.get_executor(), "s1", slow.fn(), 1);
  flag published, drained;
  {
    asio::io_context publishers;
    spawn(publishers, published, publish_all(bus, "s1", "abc"));
    settle(publishers);
    settle(readers);
    spawn(publishers, drained, subscription.drained());
    settle(publishers);
  }
  slow.door->open(3);
  settle(readers);
  CHECK(slow.text() == "ab");
  CHECK(!published.done);
}

TEST_CASE("a publisher publishes to its bus, and does nothing once that is gone") {
  asio::io_context context;
  auto bus = std::make_unique<event_bus>();
  const auto publish = bus->publisher();
  std::vector<std::string> seen;
  const auto keep = [&](sandbox_event event) -> asio::awaitable<void> {
    seen.push_back(std::move(event.data));
    co_return;
  };
  auto subscription = bus->subscribe(context.get_executor(), "", keep);
  asio::co_spawn(context, publish(output("s", "before")), asio::detached);
  context.run();
  bus.reset();
  bool done = false;
  asio::co_spawn(context, publish(output("s", "after")),
                 [&](std::exception_ptr failure) { done = !failure; });
  context.restart();
  context.run();
  CHECK(done);
  CHECK(seen == std::vector<std::string>{"before"});
}
