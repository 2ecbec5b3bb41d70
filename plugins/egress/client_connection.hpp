// One accepted connection until it is over or has become a tunnel: its socket, what was read and not used,
// its limits, and its end. The first byte says which protocol it speaks, on every listener.
//
// Alive while a coroutine of it runs. Whoever waits finds out afterwards why the wait ended: `late`, `gone`
// or neither. On the session's worker.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "egress_session.hpp"
#include "stream.hpp"

namespace ccbox::egress {

class client_connection : public session_member, public std::enable_shared_from_this<client_connection> {
 public:
  client_connection(std::shared_ptr<egress_session> session, stream_socket socket);
  void start();
  void abort() override;

  egress_session& session() { return *session_; }
  stream_socket& socket() { return socket_; }
  std::string& input() { return input_; }
  egress_session::place& place() { return place_; }
  bool gone() const { return gone_; }
  bool late() const { return late_; }
  // Until another is set. 0: none. When it passes, what the connection waits for ends.
  void limit(std::chrono::milliseconds in);

  // Appends what arrives to input(); false: the client has ended or is gone, or it is late.
  task<bool> read_more();
  // The last words, to a client that may still be sending: FIN, then what comes is thrown away for a moment,
  // so that they arrive.
  task<void> say_and_close(std::string last_words);
  // Gives up when the client goes away meanwhile.
  task<dial_outcome> dial(destination to);
  // The connection to the origin that is in use; it is closed with the client's.
  void use_origin(std::shared_ptr<stream_socket> origin) { origin_ = std::move(origin); }
  // Watches a client that owes nothing: broken, it takes the exchange along; after its FIN `after_end` is
  // left.
  void watch(std::chrono::milliseconds after_end);
  void unwatch();
  // Hands the socket over; nothing may be done with this connection after.
  void become_tunnel(std::string protocol, destination to, decision by, tunnel::side origin);

 private:
  void client_moved();
  std::shared_ptr<egress_session> session_;
  stream_socket socket_;
  egress_session::place place_;
  std::string input_;
  std::shared_ptr<dial_scope> dialling_;
  std::shared_ptr<stream_socket> origin_;
  deadline limit_;
  std::chrono::milliseconds after_end_{0};
  unsigned watch_ = 0;  // which watch is on; a new one outdates the old one's handler
  bool watching_ = false, gone_ = false, late_ = false;
};

}  // namespace ccbox::egress
