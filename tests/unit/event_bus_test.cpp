#include "event_bus.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/experimental/concurrent_channel.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace ccbox;
namespace asio = boost::asio;

namespace {

constexpr auto limit = std::chrono::seconds(60);

sandbox_event output(const std::string& session, std::string data) {
  sandbox_event event;
  event.session_id = session;
  event.type = sandbox_event_type::stdout_data;
  event.data = std::move(data);
  return event;
}

// Waits for a coroutine on other threads; a hang is a failure, not a hung test.
template <class T>
void finish(std::future<T> future) {
  REQUIRE(future.wait_for(limit) == std::future_status::ready);
  future.get();
}

// A door that a subscriber waits at: how a test makes one slow without sleeping.
class gate {
 public:
  explicit gate(asio::any_io_executor executor) : channel_(std::move(executor), 1000000) {}
  asio::awaitable<void> pass() { co_await channel_.async_receive(asio::use_awaitable); }
  void open(int times = 1) {
    for (int i = 0; i < times; ++i)
      channel_.try_send(boost::system::error_code());
  }

 private:
  asio::experimental::concurrent_channel<void(boost::system::error_code)> channel_;
};

// Single-threaded runs: everything that can happen without outside help has happened when settle() returns.
void settle(asio::io_context& io) {
  io.restart();
  io.poll();
}

struct flag {
  bool done = false;
  std::exception_ptr failure;
};

void spawn(asio::io_context& io, flag& f, asio::awaitable<void> work) {
  asio::co_spawn(io, std::move(work), [&f](std::exception_ptr failure) {
    f.done = true;
    f.failure = failure;
  });
}

// Collects what arrives, passing a gate for each event if there is one.
struct collector {
  std::vector<sandbox_event> events;
  std::shared_ptr<gate> door;
  std::size_t entered = 0;

  event_bus::subscriber fn() {
    return [this](sandbox_event event) { return take(std::move(event)); };
  }
  asio::awaitable<void> take(sandbox_event event) {
    ++entered;
    if (door) co_await door->pass();
    events.push_back(std::move(event));
  }
  std::string text() const {
    std::string all;
    for (const auto& event : events)
      all += event.data;
    return all;
  }
};

asio::awaitable<void> publish_all(event_bus& bus, std::string session, std::string letters) {
  for (const char letter : letters)
    co_await bus.publish(output(session, std::string(1, letter)));
}

}  // namespace

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

TEST_CASE("a publish that is cancelled while it waits throws and its event arrives in its place") {
  asio::io_context io;
  event_bus bus;
  collector slow;
  slow.door = std::make_shared<gate>(io.get_executor());
  const auto subscription = bus.subscribe(io.get_executor(), "s1", slow.fn(), 1);
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

TEST_CASE("a timer can end a publish that waits") {
  using namespace asio::experimental::awaitable_operators;
  asio::io_context io;
  event_bus bus;
  collector slow;
  slow.door = std::make_shared<gate>(io.get_executor());
  const auto subscription = bus.subscribe(io.get_executor(), "s1", slow.fn(), 1);
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

TEST_CASE("drained waits for what was published before and not for what comes after") {
  asio::io_context io;
  event_bus bus;
  collector slow;
  slow.door = std::make_shared<gate>(io.get_executor());
  const auto subscription = bus.subscribe(io.get_executor(), "s1", slow.fn());
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
