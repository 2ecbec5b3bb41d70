// A worker without a thread for unit tests of the egress parts: the test runs it, until what it waits for has
// happened or a limit has passed.
#pragma once

#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <exception>
#include <optional>

#include "plugins/egress/worker.hpp"

namespace ccbox::test {

class egress_loop {
 public:
  egress::worker& io() { return worker_; }

  template <class Condition>
  void run_until(Condition reached) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!reached()) {
      worker_.context().restart();
      REQUIRE_MESSAGE(worker_.context().run_one_until(end) == 1, "what the test waits for did not happen");
    }
  }
  // Everything that can be done without waiting.
  void settle() {
    worker_.context().restart();
    worker_.context().poll();
  }
  template <class T>
  T run(egress::task<T> work) {
    std::optional<T> out;
    std::exception_ptr failed;
    bool over = false;
    boost::asio::co_spawn(worker_.executor(), keep(std::move(work), out), [&](std::exception_ptr e) {
      failed = e;
      over = true;
    });
    run_until([&] { return over; });
    if (failed) std::rethrow_exception(failed);
    return std::move(*out);
  }

 private:
  template <class T>
  static egress::task<void> keep(egress::task<T> work, std::optional<T>& out) {
    out.emplace(co_await std::move(work));
  }

  egress::worker worker_;
};

}  // namespace ccbox::test
