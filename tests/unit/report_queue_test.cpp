#include "report_queue.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace ccbox;
using answer = report_queue::answer;

namespace {

sandbox_event about(const std::string& target) {
  sandbox_event event;
  event.data = target;
  return event;
}

}  // namespace

TEST_CASE("whoever reports first starts the publishing, and reports come out in order") {
  report_queue queue;
  CHECK(queue.push(about("a")) == answer::first);
  CHECK(queue.push(about("b")) == answer::taken);
  CHECK(queue.next(false)->data == "a");
  CHECK(queue.push(about("c")) == answer::taken);
  CHECK(queue.next(false)->data == "b");
  CHECK(queue.next(false)->data == "c");
  CHECK_FALSE(queue.next(false));
  CHECK(queue.push(about("d")) == answer::first);
}

TEST_CASE("what does not fit is counted and dropped") {
  report_queue queue(2);
  queue.push(about("a"));
  queue.push(about("b"));
  CHECK(queue.push(about("c")) == answer::full);
  CHECK(queue.push(about("d")) == answer::full);
  CHECK(queue.dropped() == 2);
  CHECK(queue.next(false)->data == "a");
  CHECK(queue.push(about("e")) == answer::taken);
  CHECK(queue.next(false)->data == "b");
  CHECK(queue.next(false)->data == "e");
}

TEST_CASE("after the last one nothing is taken any more") {
  report_queue queue;
  queue.push(about("a"));
  CHECK(queue.next(true)->data == "a");
  CHECK(queue.push(about("b")) == answer::taken);
  CHECK(queue.next(true)->data == "b");
  CHECK_FALSE(queue.next(true));
  CHECK(queue.push(about("c")) == answer::closed);
  CHECK_FALSE(queue.next(false));
}
