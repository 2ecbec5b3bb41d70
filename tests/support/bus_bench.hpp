// What the tests of the event bus share: subscribers that can be made slow, coroutines that are run in steps.
#pragma once

#include <doctest/doctest.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/concurrent_channel.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "event_bus.hpp"

namespace ccbox::test {

namespace asio = boost::asio;

constexpr auto limit = std::chrono::seconds(60);

inline sandbox_event output(const std::string& session, std::string data) {
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
inline void settle(asio::io_context& io) {
  io.restart();
  io.poll();
}

struct flag {
  bool done = false;
  std::exception_ptr failure;
};

inline void spawn(asio::io_context& io, flag& f, asio::awaitable<void> work) {
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

inline asio::awaitable<void> publish_all(event_bus& bus, std::string session, std::string letters) {
  for (const char letter : letters)
    co_await bus.publish(output(session, std::string(1, letter)));
}

}  // namespace ccbox::test
