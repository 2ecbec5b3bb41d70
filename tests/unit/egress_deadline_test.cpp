#include "plugins/egress/deadline.hpp"

#include <doctest/doctest.h>

#include "support/egress_loop.hpp"

using namespace ccbox::egress;
using namespace std::chrono_literals;

TEST_CASE("limits pass in their order, once each") {
  ccbox::test::egress_loop loop;
  std::string order;
  deadline a(loop.io().deadlines(), [&] { order += 'a'; }), b(loop.io().deadlines(), [&] { order += 'b'; });
  a.after(20ms);
  b.after(5ms);
  loop.run_until([&] { return order.size() == 2; });
  CHECK(order == "ba");
}

TEST_CASE("a limit that is moved passes at its new time, earlier or later") {
  ccbox::test::egress_loop loop;
  std::string order;
  deadline moved(loop.io().deadlines(), [&] { order += 'm'; }),
      fixed(loop.io().deadlines(), [&] { order += 'f'; });
  moved.after(5ms);
  moved.after(40ms);
  fixed.after(20ms);
  loop.run_until([&] { return order.size() == 2; });
  CHECK(order == "fm");
  order.clear();
  moved.after(10s);
  moved.after(1ms);
  loop.run_until([&] { return order == "m"; });
}

TEST_CASE("a limit that is cleared or destroyed does not pass") {
  ccbox::test::egress_loop loop;
  bool cleared = false, destroyed = false, later = false;
  deadline one(loop.io().deadlines(), [&] { cleared = true; });
  auto two = std::make_unique<deadline>(loop.io().deadlines(), [&] { destroyed = true; });
  deadline last(loop.io().deadlines(), [&] { later = true; });
  one.after(1ms);
  two->after(1ms);
  last.after(10ms);
  one.clear();
  two.reset();
  loop.run_until([&] { return later; });
  CHECK_FALSE(cleared);
  CHECK_FALSE(destroyed);
}

TEST_CASE("a limit may destroy itself and others that are due") {
  ccbox::test::egress_loop loop;
  std::unique_ptr<deadline> a, b;
  int passed = 0;
  const auto end_both = [&] {
    ++passed;
    a.reset();
    b.reset();
  };
  a = std::make_unique<deadline>(loop.io().deadlines(), end_both);
  b = std::make_unique<deadline>(loop.io().deadlines(), end_both);
  const auto due = std::chrono::steady_clock::now() + 1ms;
  a->at(due);
  b->at(due);
  loop.run_until([&] { return passed > 0; });
  loop.settle();
  CHECK(passed == 1);
}
