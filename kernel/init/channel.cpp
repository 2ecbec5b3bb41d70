#include "channel.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "failure.hpp"

namespace ccbox::init {
namespace {

constexpr std::size_t congested_frames = 1024;

bool is_unix_stream(int fd) {
  const auto option = [fd](int name) {
    int value = 0;
    socklen_t size = sizeof value;
    return getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
  };
  return option(SO_DOMAIN) == AF_UNIX && option(SO_TYPE) == SOCK_STREAM;
}

bool would_block(int error_number) {
  return error_number == EAGAIN || error_number == EWOULDBLOCK || error_number == EINTR;
}

}  // namespace

channel::channel(int fd) : socket_(fd) {
  if (!is_unix_stream(fd)) fail("the channel is not a Unix stream socket");
}

channel::input channel::receive(frame& into) {
  if (!in_payload_) {
    const auto got = read_header();
    if (got != input::complete) return got;
  }
  const auto got = read_payload();
  if (got != input::complete) return got;
  into = std::exchange(incoming_, frame{});
  header_.clear();
  received_ = 0;
  in_payload_ = false;
  return input::complete;
}

channel::input channel::read_header() {
  char bytes[header_bytes];
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * max_descriptors)];
  while (header_.size() < header_bytes) {
    iovec data{bytes, header_bytes - header_.size()};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0) return would_block(errno) ? input::nothing : input::ended;
    if (got == 0) return input::ended;
    const bool first = header_.empty();
    header_.append(bytes, static_cast<std::size_t>(got));
    if (!take_descriptors(message, first)) return input::malformed;
  }
  const auto header = decode_header(header_);
  if (!header) return input::malformed;
  const auto count = incoming_.descriptors.size();
  if (incoming_.descriptors_lost ? count > header->descriptors : count != header->descriptors)
    return input::malformed;
  incoming_.header = *header;
  incoming_.payload.resize(header->payload_bytes);
  in_payload_ = true;
  return input::complete;
}

channel::input channel::read_payload() {
  while (received_ < incoming_.payload.size()) {
    iovec data{incoming_.payload.data() + received_, incoming_.payload.size() - received_};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    const ssize_t got = recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0) return would_block(errno) ? input::nothing : input::ended;
    if (got == 0) return input::ended;
    if (message.msg_flags & MSG_CTRUNC) return input::malformed;  // descriptors belong to the first byte
    received_ += static_cast<std::size_t>(got);
  }
  return input::complete;
}

bool channel::take_descriptors(msghdr& message, bool expected) {
  bool sound = true;
  if (message.msg_flags & MSG_CTRUNC) {
    incoming_.descriptors_lost = true;
    sound = expected;
  }
  for (auto* item = CMSG_FIRSTHDR(&message); item; item = CMSG_NXTHDR(&message, item)) {
    sound = sound && expected;
    if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) return false;
    const std::size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(item) + i * sizeof(int), sizeof fd);
      incoming_.descriptors.emplace_back(fd);
    }
  }
  return sound;
}

void channel::send(frame_type type, std::uint64_t id, std::string_view payload,
                   std::vector<unique_fd> descriptors) {
  outgoing out;
  out.bytes = encode_header(
      {static_cast<std::uint32_t>(payload.size()), type, static_cast<std::uint16_t>(descriptors.size()), id});
  out.bytes.append(payload);
  out.descriptors = std::move(descriptors);
  queue_.push_back(std::move(out));
}

bool channel::flush() {
  std::size_t done = 0;
  bool alive = true;
  stalled_ = false;
  while (done < queue_.size()) {
    auto& out = queue_[done];
    iovec data{out.bytes.data() + sent_, out.bytes.size() - sent_};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * max_descriptors)] = {};
    if (const auto count = out.descriptors.size(); count > 0) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
      auto* item = CMSG_FIRSTHDR(&message);
      item->cmsg_level = SOL_SOCKET;
      item->cmsg_type = SCM_RIGHTS;
      item->cmsg_len = CMSG_LEN(sizeof(int) * count);
      for (std::size_t i = 0; i < count; ++i) {
        const int fd = out.descriptors[i].get();
        std::memcpy(CMSG_DATA(item) + i * sizeof fd, &fd, sizeof fd);
      }
    }
    const ssize_t wrote = sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (wrote < 0) {
      // Too many descriptors of this user are in flight somewhere: not our socket's state, so poll cannot
      // tell.
      stalled_ = errno == ETOOMANYREFS;
      alive = stalled_ || would_block(errno);
      break;
    }
    out.descriptors.clear();
    sent_ += static_cast<std::size_t>(wrote);
    if (sent_ < out.bytes.size()) continue;
    sent_ = 0;
    ++done;
  }
  queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(done));
  return alive;
}

bool channel::congested() const {
  return queue_.size() >= congested_frames;
}

}  // namespace ccbox::init
