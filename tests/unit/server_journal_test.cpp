#include "event_journal.hpp"

#include <doctest/doctest.h>

#include "support/event_loop.hpp"

using namespace ccbox;
using namespace ccbox::server;
namespace asio = boost::asio;

namespace {

sandbox_event output_of(const std::string& session, std::string data) {
  sandbox_event event;
  event.session_id = session;
  event.type = sandbox_event_type::stdout_data;
  event.data = std::move(data);
  return event;
}

struct scene {
  test::event_loop loop;
  event_bus bus;
  event_journal journal;
  explicit scene(journal_limits limits = {}) : journal(loop.strand(), bus, limits) {}

  void publish(const std::string& session, const std::string& data) {
    loop.run(bus.publish(output_of(session, data)));
  }
  // All that there is, as "position:sequence:data".
  std::string take(event_journal::reader& from) {
    std::string out;
    for (const auto& entry : loop.run(from.next()))
      out += std::to_string(entry->position) + ":" + std::to_string(entry->event.sequence) + ":" +
             entry->event.data + " ";
    return out;
  }
  void settle(const std::string& session) { loop.run(journal.finish(session)); }
};

}  // namespace

TEST_CASE("a reader gets the events of its session, from any point that is still there") {
  scene s;
  s.journal.follow("a");
  s.journal.follow("b");
  for (const std::string text : {"1", "2", "3"}) {
    s.publish("a", "a" + text);
    s.publish("b", "b" + text);
  }
  s.settle("a");
  s.settle("b");
  auto all_of_a = s.journal.read("a", 0);
  REQUIRE(all_of_a.has_value());
  CHECK(s.take(*all_of_a) == "1:1:a1 3:2:a2 5:3:a3 ");
  CHECK(s.take(*all_of_a) == "");  // the end
  auto rest_of_b = s.journal.read("b", 2);
  REQUIRE(rest_of_b.has_value());
  CHECK(s.take(*rest_of_b) == "6:3:b3 ");
  auto all = s.journal.read_all(0);
  CHECK(s.take(all) == "1:1:a1 2:1:b1 3:2:a2 4:2:b2 5:3:a3 6:3:b3 ");
  auto later = s.journal.read_all(4);
  CHECK(s.take(later) == "5:3:a3 6:3:b3 ");
  CHECK_FALSE(s.journal.read("c", 0).has_value());
}

TEST_CASE("a reader that waits is woken by what comes, and by stop()") {
  scene s;
  s.journal.follow("a");
  auto reader = s.journal.read("a", std::nullopt);
  REQUIRE(reader.has_value());
  auto waiting = s.loop.begin(reader->next());
  s.publish("a", "x");
  const auto entries = s.loop.finish(waiting, std::chrono::seconds(30));
  REQUIRE(entries.size() == 1);
  CHECK(entries[0]->event.data == "x");
  auto again = s.loop.begin(reader->next());
  reader->stop();
  CHECK(s.loop.finish(again, std::chrono::seconds(30)).empty());
}

TEST_CASE("the oldest events go when a session has too many, and a late reader is told how many") {
  scene s({10'000, 64});
  s.journal.follow("a");
  for (int i = 0; i < 20; ++i)
    s.publish("a", std::string(1000, 'x'));
  s.settle("a");
  auto reader = s.journal.read("a", 0);
  REQUIRE(reader.has_value());
  const auto entries = s.loop.run(reader->next());
  CHECK(entries.size() < 10);
  CHECK(entries.front()->event.sequence == 21 - entries.size());
  CHECK(reader->missing() == 20 - entries.size());
  CHECK(s.journal.read_all(0).missing() == 20 - entries.size());
}

TEST_CASE("what an attached reader has not taken is never dropped: who publishes waits") {
  scene s({10'000, 64});
  s.journal.follow("a");
  auto reader = s.journal.read("a", 0);
  REQUIRE(reader.has_value());
  std::size_t taken = 0;
  auto publishing = s.loop.begin([](scene& in) -> asio::awaitable<void> {
    for (int i = 0; i < 2000; ++i) {
      auto event = output_of("a", std::string(1000, 'x'));
      co_await in.bus.publish(std::move(event));
    }
  }(s));
  std::uint64_t last = 0;
  while (taken < 2000) {
    for (const auto& entry : s.loop.run(reader->next())) {
      CHECK(entry->event.sequence == last + 1);
      last = entry->event.sequence;
      ++taken;
    }
  }
  s.loop.finish(publishing, std::chrono::seconds(30));
  CHECK(reader->missing() == 0);
}

TEST_CASE("a reader that goes away lets the publisher go on") {
  scene s({10'000, 64});
  s.journal.follow("a");
  std::optional<event_journal::reader> reader = std::move(*s.journal.read("a", 0));
  auto publishing = s.loop.begin([](scene& in) -> asio::awaitable<void> {
    for (int i = 0; i < 2000; ++i) {
      auto event = output_of("a", std::string(1000, 'x'));
      co_await in.bus.publish(std::move(event));
    }
  }(s));
  CHECK(s.loop.run(reader->next()).size() > 0);
  CHECK_FALSE(publishing->over);
  reader.reset();
  s.loop.finish(publishing, std::chrono::seconds(30));
}

TEST_CASE("a new session of an old id begins anew, and readers of the old one come to an end") {
  scene s;
  s.journal.follow("a");
  s.publish("a", "old");
  s.settle("a");
  auto old = s.journal.read("a", 0);
  REQUIRE(old.has_value());
  s.bus.forget("a");
  s.journal.follow("a");
  s.publish("a", "new");
  s.settle("a");
  CHECK(s.take(*old) == "1:1:old ");
  CHECK(s.take(*old) == "");
  auto fresh = s.journal.read("a", 0);
  REQUIRE(fresh.has_value());
  CHECK(s.take(*fresh) == "2:1:new ");
}

TEST_CASE("the events of many ended sessions are not kept for ever") {
  scene s({4 << 20, 3});
  for (const std::string id : {"a", "b", "c", "d"}) {
    s.journal.follow(id);
    s.publish(id, id);
    s.settle(id);
  }
  CHECK_FALSE(s.journal.read("a", 0).has_value());
  CHECK(s.journal.read("b", 0).has_value());
}
