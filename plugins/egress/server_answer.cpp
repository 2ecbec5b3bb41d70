#include "server_answer.hpp"

#include <algorithm>

#include "tls_record.hpp"

namespace ccbox::egress {
namespace {

constexpr char server_hello_message = 2;
constexpr std::size_t message_header_bytes = 4, version_bytes = 2;

constexpr std::string_view retry_random{
    "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91"
    "\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c",
    32};
constexpr std::size_t telling_bytes = message_header_bytes + version_bytes + retry_random.size();

// Moves the front of `from` to `to`, up to `size` bytes of it; true once it has them.
bool fill(std::string& to, std::string_view& from, std::size_t size) {
  const auto part = from.substr(0, size - to.size());
  to += part;
  from.remove_prefix(part.size());
  return to.size() == size;
}

}  // namespace

void server_answer::take(std::string_view bytes) {
  while (!given_ && !bytes.empty()) {
    if (record_left_ == 0) {
      if (!fill(header_, bytes, tls_record::header_bytes)) return;
      const auto record = tls_record::read(header_);
      header_.clear();
      in_handshake_ = record.type == tls_record::handshake;
      given_ = !record.is_tls || record.type == tls_record::application_data;
      record_left_ = record.size;
      continue;
    }
    const auto content = bytes.substr(0, record_left_);
    bytes.remove_prefix(content.size());
    record_left_ -= content.size();
    if (in_handshake_) take_handshake(content);
  }
}

void server_answer::take_handshake(std::string_view bytes) {
  while (!bytes.empty()) {
    if (message_left_ > 0) {
      const auto passed = std::min(message_left_, bytes.size());
      bytes.remove_prefix(passed);
      message_left_ -= passed;
      continue;
    }
    const bool whole = fill(message_, bytes, telling_bytes);
    given_ = message_.front() != server_hello_message;
    if (given_ || !whole) return;
    const auto byte = [this](std::size_t at) {
      return static_cast<std::size_t>(static_cast<unsigned char>(message_[at]));
    };
    const auto size = message_header_bytes + (byte(1) << 16 | byte(2) << 8 | byte(3));
    given_ = size < telling_bytes || !message_.ends_with(retry_random);
    if (given_) return;
    message_left_ = size - telling_bytes;
    message_.clear();
  }
}

}  // namespace ccbox::egress
