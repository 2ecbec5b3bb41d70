#include "client_hello.hpp"

namespace ccbox::egress {

namespace {

constexpr unsigned first_record = 20, handshake_record = 22, last_record = 24;  // types of records
constexpr unsigned client_hello_message = 1;
constexpr std::size_t record_header_bytes = 5;
constexpr std::size_t message_header_bytes = 4;
constexpr std::size_t max_record_bytes = 1 << 14;
constexpr std::size_t max_session_id_bytes = 32;
constexpr unsigned server_name_extension = 0;
constexpr unsigned host_name_type = 0;

using state = hello_peek::state;

// Takes fields off the front; once one is not there, nothing is.
class reader {
 public:
  explicit reader(std::string_view bytes) : left_(bytes) {}

  std::string_view bytes(std::size_t count) {
    if (count > left_.size()) {
      failed_ = true;
      left_ = {};
      return {};
    }
    const auto out = left_.substr(0, count);
    left_.remove_prefix(count);
    return out;
  }
  std::size_t number(std::size_t size) {
    std::size_t out = 0;
    for (const char c : bytes(size))
      out = out << 8 | static_cast<unsigned char>(c);
    return out;
  }
  // A vector behind its length of `size` bytes.
  std::string_view vector(std::size_t size) { return bytes(number(size)); }
  bool failed() const { return failed_; }
  bool at_end() const { return left_.empty(); }

 private:
  std::string_view left_;
  bool failed_ = false;
};

// One host name and nothing else: of two, readers take different ones.
hello_peek read_server_name(std::string_view extension) {
  reader in(extension);
  reader list(in.vector(2));
  const auto type = list.number(1);
  const auto name = list.vector(2);
  if (in.failed() || !in.at_end() || list.failed() || !list.at_end() || type != host_name_type ||
      name.empty())
    return {state::malformed, {}};
  return {state::named, std::string(name)};
}

hello_peek read_extensions(std::string_view extensions) {
  hello_peek out{state::no_name, {}};
  for (reader in(extensions); !in.at_end();) {
    const auto type = in.number(2);
    const auto content = in.vector(2);
    if (in.failed()) return {state::malformed, {}};
    if (type != server_name_extension) continue;
    if (out.what != state::no_name) return {state::malformed, {}};  // a second one
    out = read_server_name(content);
    if (out.what == state::malformed) return out;
  }
  return out;
}

hello_peek read_hello(std::string_view body) {
  reader in(body);
  const auto version_major = in.number(1);
  in.number(1);
  in.bytes(32);
  const auto session_id = in.vector(1);
  const auto ciphers = in.vector(2);
  const auto compressions = in.vector(1);
  if (in.failed() || version_major != 3 || session_id.size() > max_session_id_bytes || ciphers.empty() ||
      ciphers.size() % 2 != 0 || compressions.empty())
    return {state::malformed, {}};
  if (in.at_end()) return {state::no_name, {}};
  const auto extensions = in.vector(2);
  if (in.failed() || !in.at_end()) return {state::malformed, {}};
  return read_extensions(extensions);
}

bool begins_as_tls(std::string_view bytes) {
  const auto type = bytes.empty() ? first_record : static_cast<unsigned char>(bytes[0]);
  return type >= first_record && type <= last_record && (bytes.size() < 2 || bytes[1] == 3);
}

}  // namespace

hello_peek peek_client_hello(std::string_view bytes) {
  const auto begins_as = [](std::string_view text, std::size_t at, unsigned byte) {
    return text.size() <= at || static_cast<unsigned char>(text[at]) == byte;
  };
  std::string message;  // out of its records
  for (std::size_t at = 0;;) {
    const auto header = bytes.substr(at, record_header_bytes);
    if (at == 0 && !begins_as_tls(bytes)) return {state::not_tls, {}};
    // Another record first: some servers skip an alert and read the hello behind it.
    if (!begins_as(header, 0, handshake_record) && bytes.size() > 1) return {state::malformed, {}};
    if (!begins_as(header, 1, 3)) return {state::malformed, {}};
    if (header.size() < record_header_bytes) break;
    const auto size = reader(header.substr(3)).number(2);
    if (size == 0 || size > max_record_bytes) return {state::malformed, {}};
    const auto content = bytes.substr(at + record_header_bytes, size);
    message.append(content);
    if (!begins_as(message, 0, client_hello_message)) return {state::malformed, {}};
    if (message.size() >= message_header_bytes) {
      const auto body_size = reader(std::string_view(message).substr(1)).number(3);
      if (body_size > max_client_hello_bytes) return {state::malformed, {}};
      const auto body = std::string_view(message).substr(message_header_bytes, body_size);
      if (body.size() == body_size) {
        // Nothing may share its last record: servers differ in what they make of that.
        if (message.size() != message_header_bytes + body_size || content.size() != size)
          return {state::malformed, {}};
        auto out = read_hello(body);
        out.size = at + record_header_bytes + size;
        return out;
      }
    }
    if (content.size() < size) break;
    at += record_header_bytes + size;
  }
  return {bytes.size() < max_client_hello_bytes ? state::need_more : state::malformed, {}};
}

}  // namespace ccbox::egress
