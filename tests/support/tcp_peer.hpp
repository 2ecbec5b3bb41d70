// One end of a stream connection in a test: blocking, every wait limited, SIGPIPE never. Tests read what they
// expect and fail where it does not come.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "unique_fd.hpp"

namespace ccbox::test {

class tcp_peer {
 public:
  explicit tcp_peer(unique_fd fd);
  static tcp_peer connect(std::uint16_t port);  // to 127.0.0.1
  tcp_peer(tcp_peer&&) = default;
  tcp_peer& operator=(tcp_peer&&) = default;

  int fd() const { return fd_.get(); }
  bool send(std::string_view bytes);
  bool send_byte_by_byte(std::string_view bytes);  // each in a segment of its own
  void half_close();                               // FIN; reading goes on
  void reset();                                    // RST
  void close() { fd_.reset(); }

  // Up to and with `mark`; less if the connection ends or the limit passes first.
  std::string read_until(std::string_view mark);
  std::string read_exactly(std::size_t bytes);
  std::string read_all();  // to the end
  // True if the peer's end (or reset) arrives within the limit and nothing before it.
  bool ends(std::chrono::milliseconds limit = std::chrono::seconds(10));
  bool was_reset() const { return reset_; }
  // Nothing to read, and not ended, right now.
  bool is_quiet();

 private:
  bool fill();
  unique_fd fd_;
  std::string buffer_;
  bool reset_ = false;
};

}  // namespace ccbox::test
