// Whether a TLS server's answer to a ClientHello is more than a request to say it again (HelloRetryRequest, a
// ServerHello with a fixed random, RFC 8446 4.1.4). Incremental: feed what the server sends, in order.
//
// Alerts and change_cipher_spec are passed over: servers send them in front of an answer and behind a
// request. Anything else, TLS or not, is an answer.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ccbox::egress {

class server_answer {
 public:
  void take(std::string_view bytes);
  bool given() const { return given_; }

 private:
  void take_handshake(std::string_view bytes);
  std::string header_;            // of the record, as far as it is there
  std::string message_;           // the front of the handshake message
  std::size_t record_left_ = 0;   // of the record, still to come
  std::size_t message_left_ = 0;  // of a request, still to be passed over
  bool in_handshake_ = false;
  bool given_ = false;
};

}  // namespace ccbox::egress
