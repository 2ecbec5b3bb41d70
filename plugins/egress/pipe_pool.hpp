// Pipes for splice, lent while bytes are in flight: an idle tunnel holds none, and with the last tunnel all
// are closed. On one worker's thread only.
#pragma once

#include <cstddef>
#include <vector>

namespace ccbox::egress {

class pipe_pool {
 public:
  struct pipe {
    int read_end = -1, write_end = -1;
    explicit operator bool() const { return read_end >= 0; }
  };
  static constexpr std::size_t capacity_bytes = 256 * 1024;
  static constexpr std::size_t most_kept = 16;

  pipe_pool() = default;
  pipe_pool(const pipe_pool&) = delete;
  ~pipe_pool();

  // No pipe if this process has no descriptors left; the caller copies instead.
  pipe take();
  // An empty pipe is kept for the next; one that holds bytes is closed.
  void give_back(pipe& lent, bool is_empty);

  // Tunnels that are alive.
  void enter() { ++users_; }
  void leave();

 private:
  void close_all();
  std::vector<pipe> free_;
  std::size_t users_ = 0;
};

}  // namespace ccbox::egress
