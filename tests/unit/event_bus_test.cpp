// What the bus delivers, in which order and within which bounds.
#include "event_bus.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

#include "support/bus_bench.hpp"

using namespace ccbox;
using namespace ccbox::test;

TEST_CASE(
    "three subscribers of different speed get 50,000 events each, in order, within their memory bounds") {
  constexpr int total = 50000;
  constexpr std::size_t queue_limit = 32 << 10;
  asio::thread_pool pool(4);
  event_bus bus;

  struct reader {
    int turn_every = 0;  // lets others go first at each such event: its slowness
    std::shared_ptr<gate> door;
    std::uint64_t next = 1;
    bool in_order = true;
    std::atomic<bool> busy = false;
    bool overlapped = false;
    std::size_t most_bytes = 0;
    event_bus::subscription subscription;

    asio::awaitable<void> take(sandbox_event event) {
      if (busy.exchange(true)) overlapped = true;
      if (next == 1 && door) co_await door->pass();
      if (turn_every != 0 && next % turn_every == 0) co_await asio::post(asio::use_awaitable);
      in_order = in_order && event.sequence == next && event.data == "event " + std::to_string(next - 1);
      ++next;
      busy = false;
    }
  };
  reader readers[3];
  readers[1].turn_every = 10;
  readers[2].turn_every = 2;
  readers[2].door = std::make_shared<gate>(pool.get_executor());
  for (auto& r : readers) {
    r.subscription = bus.subscribe(
        pool.get_executor(), "s1", [&r](sandbox_event event) { return r.take(std::move(event)); },
        queue_limit);
  }
  std::atomic<int> published = 0;
  auto work = [&]() -> asio::awaitable<void> {
    for (int i = 0; i < total; ++i) {
      co_await bus.publish(output("s1", "event " + std::to_string(i)));
      for (auto& r : readers)
        r.most_bytes = std::max(r.most_bytes, r.subscription.queued_bytes());
      ++published;
    }
    for (auto& r : readers)
      co_await r.subscription.drained();
  };
  auto finished = asio::co_spawn(pool, work, asio::use_future);
  // The slow one stands at its door until the publisher has filled its queue and waits.
  const auto give_up = std::chrono::steady_clock::now() + limit;
  while (readers[2].subscription.queued_bytes() < queue_limit - sizeof(sandbox_event) - 100 &&
         std::chrono::steady_clock::now() < give_up)
    std::this_thread::yield();
  CHECK(published < total / 100);
  readers[2].door->open();
  finish(std::move(finished));
  for (auto& r : readers) {
    CAPTURE(r.turn_every);
    CHECK(r.next == total + 1);
    CHECK(r.in_order);
    CHECK(!r.overlapped);
    CHECK(r.most_bytes <= queue_limit);
    CHECK(r.subscription.queued_bytes() == 0);
  }
}

TEST_CASE("publish waits while a queue is full and goes on when there is room") {
  asio::io_context io;
  event_bus bus;
  collector slow;
  slow.door = std::make_shared<gate>(io.get_executor());
  const auto subscription = bus.subscribe(io.get_executor(), "s1", slow.fn(), sizeof(sandbox_event) * 3 + 20);
  flag published;
  spawn(io, published, publish_all(bus, "s1", "abcde"));
  settle(io);
  CHECK(!published.done);
  CHECK(slow.entered == 1);
  CHECK(subscription.queued_bytes() <= sizeof(sandbox_event) * 3 + 20);
  slow.door->open();
  settle(io);
  CHECK(!published.done);
  CHECK(slow.text() == "a");
  slow.door->open();
  settle(io);
  CHECK(published.done);
  slow.door->open(3);
  settle(io);
  CHECK(slow.text() == "abcde");
}

TEST_CASE("an event larger than the limit passes when it is alone") {
  asio::io_context io;
  event_bus bus;
  collector slow;
  slow.door = std::make_shared<gate>(io.get_executor());
  const auto subscription = bus.subscribe(io.get_executor(), "s1", slow.fn(), 1);
  flag published;
  spawn(io, published, bus.publish(output("s1", std::string(100000, 'x'))));
  settle(io);
  CHECK(published.done);
  CHECK(subscription.queued_bytes() >= 100000);
  flag second;
  spawn(io, second, bus.publish(output("s1", "y")));
  settle(io);
  CHECK(!second.done);
  slow.door->open(2);
  settle(io);
  CHECK(second.done);
  CHECK(slow.events.size() == 2);
}

TEST_CASE("other events wait in the same queue as output, so order holds") {
  asio::io_context io;
  event_bus bus;
  collector slow;
  slow.door = std::make_shared<gate>(io.get_executor());
  const auto subscription = bus.subscribe(io.get_executor(), "s1", slow.fn(), 1);
  flag published;
  auto work = [&]() -> asio::awaitable<void> {
    co_await bus.publish(output("s1", "first"));
    co_await bus.publish(output("s1", "second"));
    sandbox_event exit;
    exit.session_id = "s1";
    exit.type = sandbox_event_type::exit;
    co_await bus.publish(exit);
  };
  spawn(io, published, work());
  slow.door->open(3);
  settle(io);
  REQUIRE(published.done);
  REQUIRE(slow.events.size() == 3);
  CHECK(slow.events[0].data == "first");
  CHECK(slow.events[1].data == "second");
  CHECK(slow.events[2].type == sandbox_event_type::exit);
}

TEST_CASE("a slow subscriber does not keep the event from a fast one") {
  asio::io_context io;
  event_bus bus;
  collector slow, fast;
  slow.door = std::make_shared<gate>(io.get_executor());
  const auto first = bus.subscribe(io.get_executor(), "s1", slow.fn(), 1);
  const auto second = bus.subscribe(io.get_executor(), "s1", fast.fn());
  flag published;
  spawn(io, published, publish_all(bus, "s1", "ab"));
  settle(io);
  CHECK(!published.done);
  CHECK(fast.text() == "ab");
  slow.door->open(2);
  settle(io);
  CHECK(published.done);
}

TEST_CASE("events are numbered per session from 1 without gaps, heard or not") {
  asio::io_context io;
  event_bus bus;
  flag done;
  spawn(io, done, publish_all(bus, "s1", "ab"));
  settle(io);
  collector late;
  const auto subscription = bus.subscribe(io.get_executor(), "", late.fn());
  flag one, two;
  spawn(io, one, publish_all(bus, "s1", "c"));
  spawn(io, two, publish_all(bus, "s2", "d"));
  settle(io);
  REQUIRE(late.events.size() == 2);
  std::map<std::string, std::uint64_t> sequences;
  for (const auto& event : late.events)
    sequences[event.session_id] = event.sequence;
  CHECK(sequences == std::map<std::string, std::uint64_t>{{"s1", 3}, {"s2", 1}});
  bus.forget("s1");
  flag again;
  spawn(io, again, publish_all(bus, "s1", "e"));
  settle(io);
  CHECK(late.events.back().sequence == 1);
}

TEST_CASE("a subscriber of one session hears no other and one of all sessions hears every one") {
  asio::io_context io;
  event_bus bus;
  collector one, all;
  const auto first = bus.subscribe(io.get_executor(), "s1", one.fn());
  const auto second = bus.subscribe(io.get_executor(), "", all.fn());
  flag a, b, c;
  spawn(io, a, publish_all(bus, "s1", "ace"));
  spawn(io, b, publish_all(bus, "s2", "bdf"));
  spawn(io, c, publish_all(bus, "", "x"));
  settle(io);
  CHECK(one.text() == "ace");
  CHECK(all.events.size() == 7);
}

TEST_CASE("events of eight sessions published at once interleave and each session's are in order") {
  constexpr int sessions = 8;
  constexpr int each = 1500;
  asio::thread_pool pool(4);
  event_bus bus;
  std::map<std::string, std::uint64_t> last;
  int heard = 0, switches = 0;
  std::string previous;
  bool in_order = true;
  auto take = [&](sandbox_event event) -> asio::awaitable<void> {
    in_order = in_order && event.sequence == ++last[event.session_id];
    switches += event.session_id != previous;
    previous = event.session_id;
    ++heard;
    co_return;
  };
  auto subscription = bus.subscribe(pool.get_executor(), "", take, 4096);
  auto publisher = [&bus](int number) -> asio::awaitable<void> {
    for (int i = 0; i < each; ++i)
      co_await bus.publish(output("s" + std::to_string(number), "x"));
  };
  std::vector<std::future<void>> publishers;
  for (int i = 0; i < sessions; ++i)
    publishers.push_back(asio::co_spawn(asio::make_strand(pool), publisher(i), asio::use_future));
  for (auto& one : publishers)
    finish(std::move(one));
  finish(asio::co_spawn(pool, subscription.drained(), asio::use_future));
  CHECK(heard == sessions * each);
  CHECK(in_order);
  CHECK(switches > sessions);
}

TEST_CASE("a small event does not overtake a large one that waits for room") {
  asio::io_context io;
  event_bus bus;
  collector slow;
  slow.door = std::make_shared<gate>(io.get_executor());
  const std::size_t room = 2 * sizeof(sandbox_event) + 100;
  const auto subscription = bus.subscribe(io.get_executor(), "", slow.fn(), room);
  flag first, large, small;
  spawn(io, first, publish_all(bus, "s1", "a"));
  settle(io);
  spawn(io, large, bus.publish(output("s2", std::string(room, 'L'))));
  settle(io);
  spawn(io, small, publish_all(bus, "s3", "b"));
  settle(io);
  CHECK(!large.done);
  CHECK(!small.done);  // it would fit
  slow.door->open();
  settle(io);
  CHECK(large.done);
  slow.door->open(2);
  settle(io);
  CHECK(small.done);
  REQUIRE(slow.events.size() == 3);
  CHECK(slow.events[2].data == "b");
}

TEST_CASE("subscribing, cancelling and publishing on many threads at once neither hangs nor reorders") {
  constexpr int sessions = 4;
  constexpr int visitors = 6;
  constexpr int rounds = 40;
  asio::thread_pool pool(4);
  event_bus bus;
  std::atomic<bool> in_order = true;
  std::atomic<int> visiting = visitors;
  std::atomic<int> visits_with_events = 0;

  auto publisher = [&](int number) -> asio::awaitable<void> {
    const auto session = "s" + std::to_string(number);
    while (visiting > 0) {
      co_await bus.publish(output(session, std::string(50, 'x')));
      co_await asio::post(asio::use_awaitable);
    }
  };
  // Subscribes again and again, to one session or to all, and leaves in the middle of the stream in several
  // ways.
  auto visitor = [&](int number) -> asio::awaitable<void> {
    const asio::any_io_executor executor = co_await asio::this_coro::executor;
    for (int round = 0; round < rounds; ++round) {
      struct visit {
        std::map<std::string, std::uint64_t> last;
        std::atomic<int> heard = 0;
      };
      const auto here = std::make_shared<visit>();
      auto take = [&in_order, here, number](sandbox_event event) -> asio::awaitable<void> {
        auto& before = here->last[event.session_id];
        if (before != 0 && event.sequence != before + 1) in_order = false;
        before = event.sequence;
        ++here->heard;
        if (number % 2) co_await asio::post(asio::use_awaitable);
        if (number == 3 && here->heard == 2) throw std::runtime_error("tired");
      };
      auto subscription =
          bus.subscribe(executor, number % 3 ? "s" + std::to_string(round % sessions) : "", take, 1000);
      while (here->heard == 0)
        co_await asio::post(asio::use_awaitable);
      ++visits_with_events;
      if (round % 2) subscription.cancel();
      if (round % 4 == 1) co_await subscription.drained();
    }
    --visiting;
  };
  std::vector<std::future<void>> running;
  for (int i = 0; i < sessions; ++i)
    running.push_back(asio::co_spawn(asio::make_strand(pool), publisher(i), asio::use_future));
  for (int i = 0; i < visitors; ++i)
    running.push_back(asio::co_spawn(asio::make_strand(pool), visitor(i), asio::use_future));
  for (auto& one : running)
    finish(std::move(one));
  pool.join();
  CHECK(in_order);
  CHECK(visits_with_events == visitors * rounds);
}
