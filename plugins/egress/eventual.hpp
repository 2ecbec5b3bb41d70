// A value that somebody else provides later, and the one coroutine that waits for it. The coroutine goes on
// from the executor, never from within set(). Copies share the value; on one worker's thread only.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "stream.hpp"

namespace ccbox::egress {

template <class T>
class eventual {
 public:
  explicit eventual(io_executor where) : state_(std::make_shared<state>(where)) {}

  // The first value counts.
  void set(T value) const {
    if (state_->value) return;
    state_->value.emplace(std::move(value));
    if (auto go_on = std::exchange(state_->go_on, nullptr)) go_on();
  }
  bool is_set() const { return state_->value.has_value(); }

  task<T> get() const {
    const auto shared = state_;
    if (!shared->value) co_await wait(shared);
    co_return std::move(*shared->value);
  }

 private:
  struct state {
    explicit state(io_executor e) : where(e) {}
    io_executor where;
    std::optional<T> value;
    std::function<void()> go_on;
  };

  static auto wait(std::shared_ptr<state> shared) {
    return asio::async_initiate<decltype(in_task), void()>(
        [](auto handler, std::shared_ptr<state> s) {
          auto kept = std::make_shared<decltype(handler)>(std::move(handler));
          s->go_on = [where = s->where, kept] { asio::post(where, [kept] { (*kept)(); }); };
        },
        in_task, std::move(shared));
  }

  std::shared_ptr<state> state_;
};

}  // namespace ccbox::egress
