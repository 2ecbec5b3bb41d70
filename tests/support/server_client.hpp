// A client of cc_server on its Unix socket, as a test needs one: it waits for each answer, with a limit, and
// says exactly what it is told to.
#pragma once

#include <boost/json/value.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ccbox::test {

struct server_answer {
  unsigned status = 0;  // 0: the connection ended without an answer
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string header(const std::string& name) const;  // "" if it is absent
  boost::json::value json() const;                    // null if it is none
};

struct server_message {
  bool binary = false;
  std::string data;
};

// A WebSocket.
class server_stream {
 public:
  server_stream(const std::string& socket, const std::string& target);
  ~server_stream();
  server_stream(server_stream&&) noexcept;
  unsigned status() const;  // 101, or that of the refusal, whose body is in refusal()
  const std::string& refusal() const;
  bool send_text(const std::string& text);
  bool send_binary(const std::string& bytes);
  std::optional<server_message> receive();  // nothing: it was closed, or nothing came within the limit
  unsigned close_code() const;              // 0: not closed by the server
  void close();                             // says good-bye
  void vanish();                            // does not

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

class server_client {
 public:
  explicit server_client(std::string socket) : socket_(std::move(socket)) {}
  using header_list = std::vector<std::pair<std::string, std::string>>;
  server_answer ask(const std::string& method, const std::string& target, const std::string& body = "",
                    const header_list& headers = {}) const;
  server_answer get(const std::string& target) const { return ask("GET", target); }
  server_answer post(const std::string& target, const std::string& body) const {
    return ask("POST", target, body);
  }
  // Bytes as they are; answers all that comes back until the server closes or the limit runs out.
  std::string raw(const std::string& bytes) const;
  server_stream open(const std::string& target) const { return server_stream(socket_, target); }

 private:
  std::string socket_;
};

}  // namespace ccbox::test
