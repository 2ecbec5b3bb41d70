// An event loop and what the sessions on it share: a timer, pipes and a buffer. A session lives on one worker
// from open to close, so nothing of it needs a lock.
//
// The thread is started by start() and ended by stop(). Before start() whoever made the worker may use
// everything on it, and a test runs context() itself.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <thread>

#include "deadline.hpp"
#include "pipe_pool.hpp"
#include "stream.hpp"

namespace ccbox::egress {

class worker {
 public:
  worker();
  ~worker();
  worker(const worker&) = delete;

  void start();  // again: nothing
  // Runs what is ready, for at most `limit`, and joins. What still waits then is dropped.
  void stop(std::chrono::milliseconds limit);
  bool is_current() const { return std::this_thread::get_id() == id_; }
  bool is_started() const { return thread_.joinable(); }
  // Runs `work` on the worker's thread and waits for it; at once if this is that thread or there is none.
  void run(std::function<void()> work);

  asio::io_context& context() { return *context_; }
  io_executor executor() { return context_->get_executor(); }
  deadline_queue& deadlines() { return deadlines_; }
  pipe_pool& pipes() { return pipes_; }
  // What is in it is gone after the next wait.
  std::array<char, 64 * 1024>& scratch() { return scratch_; }

  std::atomic<unsigned> sessions = 0;

 private:
  std::optional<asio::io_context> context_;
  deadline_queue deadlines_;
  pipe_pool pipes_;
  std::array<char, 64 * 1024> scratch_;
  std::optional<asio::executor_work_guard<io_executor>> alive_;
  std::thread thread_;
  std::future<void> ended_;
  std::atomic<std::thread::id> id_{};
};

}  // namespace ccbox::egress
