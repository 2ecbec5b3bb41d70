#include "worker.hpp"

#include <pthread.h>
#include <signal.h>

#include <boost/asio/post.hpp>

namespace ccbox::egress {

worker::worker() : context_(std::in_place, 1), deadlines_(*context_) {}

worker::~worker() {
  stop(std::chrono::milliseconds(0));
  deadlines_.shut();
  context_.reset();  // first: coroutines that it still holds use the other members
}

void worker::start() {
  if (thread_.joinable()) return;
  alive_.emplace(context_->get_executor());
  // Signals are the host's business, on its own threads.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::promise<void> ended;
  ended_ = ended.get_future();
  try {
    thread_ = std::thread([this, ended = std::move(ended)]() mutable {
      id_ = std::this_thread::get_id();
      ::pthread_setname_np(::pthread_self(), "ccbox-egress");
      while (!context_->stopped()) {
        try {
          context_->run();
        } catch (const std::exception&) {
          // Whatever found no memory has lost its connection; the others go on.
        }
      }
      ended.set_value();
    });
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void worker::stop(std::chrono::milliseconds limit) {
  if (!thread_.joinable()) return;
  asio::post(*context_, [this] { deadlines_.shut(); });
  alive_.reset();
  if (ended_.wait_for(limit) != std::future_status::ready) context_->stop();
  thread_.join();
}

void worker::run(std::function<void()> work) {
  if (is_current() || !thread_.joinable()) return work();
  std::promise<void> done;
  asio::post(*context_, [&] {
    try {
      work();
      done.set_value();
    } catch (...) {
      done.set_exception(std::current_exception());
    }
  });
  done.get_future().get();
}

}  // namespace ccbox::egress
