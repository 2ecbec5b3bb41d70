#include "protocol.hpp"

namespace ccbox::init {
namespace {

constexpr std::size_t filter_instruction_bytes = 8;
constexpr std::size_t max_filter_instructions = 4096;  // BPF_MAXINSNS

class writer {
 public:
  explicit writer(std::size_t size_hint) { bytes_.reserve(size_hint); }

  template <class Number>
  void number(Number value) {
    for (std::size_t i = 0; i < sizeof(Number); ++i)
      bytes_.push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xff));
  }
  void text(std::string_view value) {
    number(static_cast<std::uint32_t>(value.size()));
    bytes_.append(value);
  }
  void list(const std::vector<std::string>& values) {
    number(static_cast<std::uint32_t>(values.size()));
    for (const auto& value : values)
      text(value);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Every read checks what is left first; after the first failure all further ones fail too.
class reader {
 public:
  explicit reader(std::string_view bytes) : rest_(bytes) {}

  template <class Number>
  Number number() {
    if (!ok_ || rest_.size() < sizeof(Number)) return fail<Number>();
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(Number); ++i)
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(rest_[i])) << (8 * i);
    rest_.remove_prefix(sizeof(Number));
    return static_cast<Number>(value);
  }
  std::uint32_t u32() { return number<std::uint32_t>(); }
  std::uint64_t u64() { return number<std::uint64_t>(); }

  std::string bytes() {
    const std::size_t length = u32();
    if (!ok_ || length > rest_.size()) return fail<std::string>();
    std::string value(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return value;
  }
  // Bytes that become a C string: a NUL would cut them short unseen.
  std::string text() {
    auto value = bytes();
    require(value.find('\0') == std::string::npos);
    return value;
  }
  std::vector<std::string> list() {
    // A count that lies must not make us reserve memory for it: each string takes at least its length field.
    const std::size_t count = u32();
    if (!ok_ || count > rest_.size() / sizeof(std::uint32_t)) return fail<std::vector<std::string>>();
    std::vector<std::string> values;
    values.reserve(count);
    for (std::size_t i = 0; i < count && ok_; ++i)
      values.push_back(text());
    return values;
  }
  void require(bool fact) { ok_ = ok_ && fact; }
  bool ok() const { return ok_; }
  bool complete() const { return ok_ && rest_.empty(); }

 private:
  template <class T>
  T fail() {
    ok_ = false;
    return T{};
  }

  std::string_view rest_;
  bool ok_ = true;
};

template <class Message>
std::optional<Message> finished(const reader& in, Message message) {
  if (!in.complete()) return std::nullopt;
  return message;
}

bool known(frame_type type) {
  switch (type) {
    case frame_type::setup:
    case frame_type::exec:
    case frame_type::signal:
    case frame_type::shutdown:
    case frame_type::listen:
    case frame_type::ready:
    case frame_type::started:
    case frame_type::failed:
    case frame_type::exited:
    case frame_type::listening:
      return true;
  }
  return false;
}

bool is_assignment(const std::string& text) {
  const auto equals = text.find('=');
  return equals != std::string::npos && equals != 0;
}

}  // namespace

std::string encode_header(const frame_header& header) {
  writer out(header_bytes);
  out.number(header.payload_bytes);
  out.number(static_cast<std::uint16_t>(header.type));
  out.number(header.descriptors);
  out.number(header.id);
  return out.take();
}

std::optional<frame_header> decode_header(std::string_view sixteen_bytes) {
  reader in(sixteen_bytes);
  frame_header header{};
  header.payload_bytes = in.u32();
  header.type = static_cast<frame_type>(in.number<std::uint16_t>());
  header.descriptors = in.number<std::uint16_t>();
  header.id = in.u64();
  in.require(header.payload_bytes <= max_payload_bytes && header.descriptors <= max_descriptors &&
             known(header.type));
  return finished(in, header);
}

std::string encode(const setup_message& message) {
  writer out(8 + message.filter.size());
  out.text(message.filter);
  out.number(message.flags);
  return out.take();
}

std::string encode(const exec_message& message) {
  std::size_t size = 64 + message.cwd.size();
  for (const auto* list : {&message.argv, &message.env})
    for (const auto& text : *list)
      size += 4 + text.size();
  writer out(size);
  out.number(message.flags);
  out.list(message.argv);
  out.list(message.env);
  out.text(message.cwd);
  out.number(message.rows);
  out.number(message.cols);
  out.number(static_cast<std::uint32_t>(message.limits.size()));
  for (const auto& [resource, value] : message.limits) {
    out.number(resource);
    out.number(value);
  }
  return out.take();
}

std::string encode(const ready_message& message) {
  writer out(8);
  out.number(message.version);
  out.number(message.pid);
  return out.take();
}

std::string encode(const failed_message& message) {
  writer out(8);
  out.number(static_cast<std::uint32_t>(message.stage));
  out.number(message.error_number);
  return out.take();
}

std::string encode(const exited_message& message) {
  writer out(8);
  out.number(static_cast<std::uint32_t>(message.signalled));
  out.number(message.value);
  return out.take();
}

std::string encode(const listening_message& message) {
  writer out(4 + 8 * message.ports.size());
  out.number(static_cast<std::uint32_t>(message.ports.size()));
  for (const auto& port : message.ports) {
    out.number(std::uint32_t{port.number});
    out.number(static_cast<std::uint32_t>(port.has_v6));
  }
  return out.take();
}

std::string encode_number(std::uint32_t value) {
  writer out(4);
  out.number(value);
  return out.take();
}

std::optional<setup_message> decode_setup(std::string_view payload) {
  reader in(payload);
  setup_message message;
  message.filter = in.bytes();
  message.flags = in.u32();
  in.require(message.filter.size() % filter_instruction_bytes == 0 &&
             message.filter.size() / filter_instruction_bytes <= max_filter_instructions &&
             (message.flags & ~std::uint32_t{setup_unconfined}) == 0);
  return finished(in, std::move(message));
}

std::optional<exec_message> decode_exec(std::string_view payload) {
  reader in(payload);
  exec_message message;
  message.flags = in.u32();
  in.require((message.flags & ~std::uint32_t{exec_stdin | exec_stdout | exec_stderr | exec_pty}) == 0);
  message.argv = in.list();
  in.require(!message.argv.empty());
  message.env = in.list();
  for (const auto& assignment : message.env)
    in.require(is_assignment(assignment));
  message.cwd = in.text();
  in.require(!message.cwd.empty() && message.cwd.front() == '/');
  message.rows = in.u32();
  message.cols = in.u32();
  in.require(message.rows <= 0xffff && message.cols <= 0xffff);
  const auto count = in.u32();
  in.require(count <= max_limits);
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    const auto resource = in.u32();
    message.limits.emplace_back(resource, in.u64());
  }
  return finished(in, std::move(message));
}

std::optional<ready_message> decode_ready(std::string_view payload) {
  reader in(payload);
  ready_message message;
  message.version = in.u32();
  message.pid = in.u32();
  return finished(in, message);
}

std::optional<failed_message> decode_failed(std::string_view payload) {
  reader in(payload);
  failed_message message;
  message.stage = static_cast<exec_stage>(in.u32());
  message.error_number = in.u32();
  in.require(message.stage >= exec_stage::descriptors && message.stage <= exec_stage::listen &&
             message.error_number > 0 && message.error_number < 4096);
  return finished(in, message);
}

std::optional<exited_message> decode_exited(std::string_view payload) {
  reader in(payload);
  exited_message message;
  const auto signalled = in.u32();
  message.signalled = signalled == 1;
  message.value = in.u32();
  in.require(signalled <= 1 &&
             (message.signalled ? message.value >= 1 && message.value <= 64 : message.value <= 255));
  return finished(in, message);
}

std::optional<listening_message> decode_listening(std::string_view payload) {
  reader in(payload);
  listening_message message;
  const auto count = in.u32();
  in.require(count >= 1 && count <= max_listen_ports);
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    const auto number = in.u32(), has_v6 = in.u32();
    in.require(number >= 1 && number <= 0xffff && has_v6 <= 1);
    message.ports.push_back({static_cast<std::uint16_t>(number), has_v6 == 1});
  }
  return finished(in, std::move(message));
}

std::optional<std::uint32_t> decode_number(std::string_view payload) {
  reader in(payload);
  const auto value = in.u32();
  return finished(in, value);
}

}  // namespace ccbox::init
