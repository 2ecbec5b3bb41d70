// Runs coroutines to their end on the test's own thread, each within a limit. What they start belongs to that
// thread, so nothing dies early with a helper thread.
#pragma once

#include <doctest/doctest.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>

namespace ccbox::test {

class event_loop {
 public:
  // Makes the reactor at once, so that its descriptors are there before any test counts its own.
  event_loop() : strand_(boost::asio::make_strand(context_)) {
    boost::asio::posix::stream_descriptor{context_};
  }

  boost::asio::any_io_executor strand() { return strand_; }
  boost::asio::any_io_executor executor() { return context_.get_executor(); }

  // The coroutine's value; throws what it throws. A test that hits the limit fails right there.
  template <class T>
  T run(boost::asio::awaitable<T> work, std::chrono::seconds limit = std::chrono::seconds(30)) {
    auto done = begin(std::move(work));
    return finish(done, limit);
  }

  // In steps: the coroutine goes on whenever the loop runs.
  template <class T>
  struct started {
    bool over = false;
    std::exception_ptr failure;
    std::conditional_t<std::is_void_v<T>, bool, std::optional<T>> value{};
  };
  template <class T>
  std::shared_ptr<started<T>> begin(boost::asio::awaitable<T> work) {
    auto done = std::make_shared<started<T>>();
    if constexpr (std::is_void_v<T>) {
      boost::asio::co_spawn(strand_, std::move(work), [done](std::exception_ptr e) {
        done->failure = e;
        done->over = true;
      });
    } else {
      boost::asio::co_spawn(strand_, std::move(work), [done](std::exception_ptr e, T value) {
        done->failure = e;
        done->value.emplace(std::move(value));
        done->over = true;
      });
    }
    return done;
  }
  template <class T>
  T finish(const std::shared_ptr<started<T>>& done, std::chrono::seconds limit = std::chrono::seconds(30)) {
    run_until([&] { return done->over; }, limit);
    if (done->failure) std::rethrow_exception(done->failure);
    if constexpr (!std::is_void_v<T>) return std::move(*done->value);
  }

  template <class Condition>
  void run_until(Condition condition, std::chrono::seconds limit = std::chrono::seconds(30)) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
      context_.restart();
      REQUIRE_MESSAGE(context_.run_one_until(end) == 1, "what the test waits for did not happen in time");
    }
  }
  // Everything that can be done without waiting.
  void settle() {
    context_.restart();
    context_.poll();
  }

 private:
  boost::asio::io_context context_;
  boost::asio::strand<boost::asio::io_context::executor_type> strand_;
};

}  // namespace ccbox::test
