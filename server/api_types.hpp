// What the transport hands to a handler and takes back. No HTTP library in sight.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/json/fwd.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "result.hpp"

namespace ccbox::server {

struct api_request {
  std::string method;                           // "GET"
  std::string path;                             // decoded, without the query
  std::map<std::string, std::string> query;     // decoded
  std::map<std::string, std::string> captured;  // {id} of the route → what stands there
  std::string body;
};

struct api_response {
  unsigned status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
};
api_response json_response(unsigned status, const boost::json::value& body);
// {"error": {code, what, hint}} with the status that docs/errors.md gives for the code.
api_response error_response(const error& e);
unsigned status_of(error_code code);

struct socket_message {
  bool binary = false;
  std::string data;
};

// A WebSocket. One reader and one writer at a time.
class message_socket {
 public:
  virtual ~message_socket() = default;
  // The next whole message; nothing: the peer has closed, is gone, or said nothing for too long.
  virtual boost::asio::awaitable<std::optional<socket_message>> read() = 0;
  // False: the peer is gone or does not read. Waits while it reads slowly.
  virtual boost::asio::awaitable<bool> write(std::string data, bool binary) = 0;
  virtual boost::asio::awaitable<void> close(unsigned code, std::string reason) = 0;
  // Aborts what waits above. May be called by the other one of reader and writer.
  virtual void abort() = 0;
};

using request_handler = std::function<boost::asio::awaitable<api_response>(const api_request&)>;
// Called before the switch of protocols: an error is answered as one. What it returns runs afterwards.
using socket_handler = std::function<boost::asio::awaitable<void>(message_socket&)>;
using upgrade_handler = std::function<boost::asio::awaitable<result<socket_handler>>(const api_request&)>;

}  // namespace ccbox::server
