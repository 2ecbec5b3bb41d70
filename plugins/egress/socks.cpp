#include "socks.hpp"

#include "secret.hpp"

namespace ccbox::egress {
namespace {

using namespace std::string_view_literals;

constexpr char connect_command = 1;
constexpr std::size_t max_field_bytes = 255;  // a SOCKS4 user id, and a SOCKS4a name

unsigned number_at(std::string_view bytes, std::size_t at) {
  return static_cast<unsigned char>(bytes[at]);
}

std::uint16_t port_at(std::string_view bytes, std::size_t at) {
  return static_cast<std::uint16_t>(number_at(bytes, at) << 8 | number_at(bytes, at + 1));
}

// A field of SOCKS4 that ends in NUL: its length, once it is there.
struct terminated {
  bool too_long = false;
  std::optional<std::size_t> length;
};
terminated find_end(std::string_view bytes) {
  const auto nul = bytes.find('\0');
  if (nul != bytes.npos) return {false, nul};
  return {bytes.size() > max_field_bytes, {}};
}

}  // namespace

socks_parser::socks_parser(std::optional<std::string> password) : password_(std::move(password)) {}

socks_parser::step socks_parser::feed(std::string_view input) {
  step s;
  while (s.consumed < input.size() && stage_ != stage::request && stage_ != stage::refused) {
    message_ += input[s.consumed++];
    if (read_message(s.reply)) message_.clear();
  }
  if (stage_ == stage::request) s.now = state::request;
  if (stage_ == stage::refused) s.now = state::refused;
  return s;
}

bool socks_parser::read_message(std::string& reply) {
  switch (stage_) {
    case stage::version:
      return read_version();
    case stage::methods:
      return read_methods(reply);
    case stage::password:
      return read_password(reply);
    case stage::request_v5:
      return read_request_v5(reply);
    case stage::request_v4:
      return read_request_v4(reply);
    case stage::request:
    case stage::refused:
      break;
  }
  return true;
}

bool socks_parser::read_version() {
  std::string no_reply;
  if (message_[0] == 5) {
    stage_ = stage::methods;
  } else if (message_[0] == 4) {
    version_ = socks_version::v4;
    stage_ = stage::request_v4;
  } else {
    refuse("the first byte is no SOCKS version", {}, no_reply);
  }
  return true;
}

// count, methods
bool socks_parser::read_methods(std::string& reply) {
  if (message_.size() < 1 + number_at(message_, 0)) return false;
  const auto methods = std::string_view(message_).substr(1);
  const char wanted = password_ ? 2 : 0;
  if (methods.find(wanted) == methods.npos) {
    refuse(password_ ? "the client does not offer a user name and password"sv
                     : "the client insists on authentication, and there is none"sv,
           "\x05\xff", reply);
    return true;
  }
  reply.append({5, wanted});
  stage_ = password_ ? stage::password : stage::request_v5;
  return true;
}

// 1, length, user name, length, password
bool socks_parser::read_password(std::string& reply) {
  const auto refused = "\x01\x01"sv;
  if (message_[0] != 1) {
    refuse("the authentication has another version", refused, reply);
    return true;
  }
  if (message_.size() < 2) return false;
  const std::size_t at = 2 + number_at(message_, 1);
  if (message_.size() <= at || message_.size() < at + 1 + number_at(message_, at)) return false;
  if (same_secret(std::string_view(message_).substr(at + 1), *password_)) {
    reply.append("\x01\x00"sv);
    stage_ = stage::request_v5;
  } else {
    refuse("the password is wrong", refused, reply);
  }
  return true;
}

// 5, command, 0, address type, address, port
bool socks_parser::read_request_v5(std::string& reply) {
  constexpr char address_v4 = 1, domain_name = 3, address_v6 = 4;
  const auto answer = [this](socks_reply code) { return this->reply(code); };
  if (message_[0] != 5) {
    refuse("the request has another version than the greeting", answer(socks_reply::general_failure), reply);
    return true;
  }
  if (message_.size() < 4) return false;
  const char type = message_[3];
  std::size_t host_at = 4, host_bytes = 0;
  if (type == address_v4) {
    host_bytes = 4;
  } else if (type == address_v6) {
    host_bytes = 16;
  } else if (type == domain_name) {
    if (message_.size() < 5) return false;
    host_at = 5;
    host_bytes = number_at(message_, 4);
  } else {
    refuse("the address type is unknown", answer(socks_reply::address_type_not_supported), reply);
    return true;
  }
  if (message_.size() < host_at + host_bytes + 2) return false;

  const auto host = std::string_view(message_).substr(host_at, host_bytes);
  if (message_[1] != connect_command)
    refuse("the command is not CONNECT", answer(socks_reply::command_not_supported), reply);
  else if (message_[2] != 0)
    refuse("the reserved byte is not 0", answer(socks_reply::general_failure), reply);
  else
    finish(host, type == domain_name, port_at(message_, host_at + host_bytes), reply);
  return true;
}

// Behind the version: command, port, address, user id, NUL; in 4a, where the address is 0.0.0.x, name, NUL
bool socks_parser::read_request_v4(std::string& reply) {
  constexpr std::size_t fixed_bytes = 7;
  const auto refused = this->reply(socks_reply::general_failure);
  const std::string_view message = message_;
  if (message.size() <= fixed_bytes) return false;
  const auto address = message.substr(3, 4);
  four_a_ = address.starts_with("\0\0\0"sv) && address[3] != 0;

  const auto user_end = find_end(message.substr(fixed_bytes));
  if (user_end.too_long) {
    refuse("the user id has more than 255 bytes", refused, reply);
    return true;
  }
  if (!user_end.length) return false;
  const auto user = message.substr(fixed_bytes, *user_end.length);
  auto name = message.substr(fixed_bytes + user.size() + 1);
  if (four_a_) {
    const auto name_end = find_end(name);
    if (name_end.too_long) {
      refuse("the host name has more than 255 bytes", refused, reply);
      return true;
    }
    if (!name_end.length) return false;
    name = name.substr(0, *name_end.length);
  }

  const auto host = four_a_ ? name : address;
  if (password_ && !same_secret(user, *password_))
    refuse("the user id is not the password", refused, reply);
  else if (message[0] != connect_command)
    refuse("the command is not CONNECT", refused, reply);
  else
    finish(host, four_a_, port_at(message, 1), reply);
  return true;
}

void socks_parser::finish(std::string_view host, bool is_name, std::uint16_t port, std::string& reply) {
  auto read = is_name ? from_domain_name(host, port) : from_address_bytes(host, port);
  if (const auto* wrong = std::get_if<malformed>(&read)) {
    offending_ = host;
    refuse(wrong->why, this->reply(socks_reply::general_failure), reply);
    return;
  }
  to_ = std::move(std::get<destination>(read));
  stage_ = stage::request;
}

void socks_parser::refuse(std::string_view why, std::string_view answer, std::string& reply) {
  stage_ = stage::refused;
  why_ = why;
  reply.append(answer);
}

std::string socks_parser::reply(socks_reply code) const {
  if (version_ == socks_version::v5) return {5, static_cast<char>(code), 0, /* IPv4 */ 1, 0, 0, 0, 0, 0, 0};
  return {0, static_cast<char>(code == socks_reply::succeeded ? 0x5a : 0x5b), 0, 0, 0, 0, 0, 0};
}

}  // namespace ccbox::egress
