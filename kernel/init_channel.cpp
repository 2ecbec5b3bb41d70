#include "init_channel.hpp"

#include <sys/socket.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <deque>

#include "watched_descriptor.hpp"

namespace ccbox {
namespace {

namespace asio = boost::asio;

constexpr std::size_t max_answer_bytes = 4096;  // every frame of init is far smaller
constexpr std::size_t read_bytes = 16 << 10;

error ended() {
  return {error_code::unavailable, "the channel to ccbox-init has ended", ""};
}

error malformed(const char* what) {
  return {error_code::failed, std::string("ccbox-init sent a malformed frame: ") + what, ""};
}

bool is_answer(init::frame_type type) {
  return type == init::frame_type::ready || type == init::frame_type::started ||
         type == init::frame_type::failed || type == init::frame_type::exited ||
         type == init::frame_type::listening;
}

struct outgoing {
  std::string bytes;
  std::size_t done = 0;
  std::vector<unique_fd> descriptors;  // until the first byte is sent
};

}  // namespace

struct init_channel::impl : std::enable_shared_from_this<impl> {
  impl(const asio::any_io_executor& strand, unique_fd s) : socket(strand, s.release()) {}

  asio::posix::stream_descriptor socket;
  std::deque<outgoing> queue;
  std::string incoming;
  std::deque<unique_fd> incoming_descriptors;
  std::optional<error> broken;

  // False when the socket is full.
  bool write_some(outgoing& out) {
    while (out.done < out.bytes.size()) {
      iovec part{out.bytes.data() + out.done, out.bytes.size() - out.done};
      msghdr message{};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * init::max_descriptors)> control{};
      if (!out.descriptors.empty()) {
        message.msg_control = control.data();
        message.msg_controllen = CMSG_SPACE(sizeof(int) * out.descriptors.size());
        cmsghdr* c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * out.descriptors.size());
        auto* numbers = reinterpret_cast<int*>(CMSG_DATA(c));
        for (const unique_fd& fd : out.descriptors)
          *numbers++ = fd.get();
      }
      const ssize_t n = ::sendmsg(socket.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
      if (n < 0) {
        if (!broken) broken = ended();
        queue.clear();
        return true;
      }
      out.done += static_cast<std::size_t>(n);
      out.descriptors.clear();
    }
    return true;
  }

  void write_queue() {
    while (!queue.empty()) {
      if (!write_some(queue.front())) {
        socket.async_wait(asio::posix::stream_descriptor::wait_write,
                          [self = shared_from_this()](boost::system::error_code e) {
                            if (!e) self->write_queue();
                          });
        return;
      }
      if (!queue.empty()) queue.pop_front();
    }
  }

  // A complete frame at the front of `incoming`.
  std::optional<result<frame>> take_frame() {
    if (incoming.size() < init::header_bytes) return {};
    const auto header = init::decode_header(std::string_view(incoming).substr(0, init::header_bytes));
    if (!header || !is_answer(header->type)) return malformed("its header");
    if (header->payload_bytes > max_answer_bytes) return malformed("too long");
    const std::size_t total = init::header_bytes + header->payload_bytes;
    if (incoming.size() < total) return {};
    if (header->descriptors > incoming_descriptors.size()) return malformed("descriptors are missing");
    frame f{header->type, header->id, incoming.substr(init::header_bytes, header->payload_bytes), {}};
    incoming.erase(0, total);
    for (unsigned i = 0; i < header->descriptors; ++i) {
      f.descriptors.push_back(std::move(incoming_descriptors.front()));
      incoming_descriptors.pop_front();
    }
    if (incoming.empty() && !incoming_descriptors.empty())
      return malformed("descriptors that it does not mention");
    return f;
  }

  enum class input { some, none, end };

  input read_some() {
    std::array<char, read_bytes> buffer;
    iovec part{buffer.data(), buffer.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * init::max_descriptors)> control;
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t n = ::recvmsg(socket.native_handle(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? input::none : input::end;
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
      if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
      const auto* numbers = reinterpret_cast<const int*>(CMSG_DATA(c));
      for (std::size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
        incoming_descriptors.emplace_back(numbers[i]);
      }
    }
    if ((message.msg_flags & MSG_CTRUNC) != 0 || incoming_descriptors.size() > init::max_descriptors) {
      broken = malformed("too many descriptors");
      return input::some;
    }
    if (n == 0) return input::end;
    incoming.append(buffer.data(), static_cast<std::size_t>(n));
    return input::some;
  }

  std::optional<result<frame>> next() {
    for (;;) {
      if (broken) return *broken;
      if (auto f = take_frame()) {
        if (!*f) broken = f->error();
        return f;
      }
      if (!socket.is_open()) return ended();
      switch (read_some()) {
        case input::some:
          break;
        case input::none:
          return {};
        case input::end:
          broken = ended();
          break;
      }
    }
  }
};

init_channel::init_channel(asio::any_io_executor strand, unique_fd socket)
    : impl_(std::make_shared<impl>(strand, std::move(socket))) {}

init_channel::~init_channel() {
  close();
}

result<void> init_channel::send(init::frame_type type, std::uint64_t id, std::string payload,
                                std::vector<unique_fd> descriptors) {
  if (payload.size() > init::max_payload_bytes || descriptors.size() > init::max_descriptors) {
    return error{error_code::too_large, "more than a frame to ccbox-init takes", ""};
  }
  impl& self = *impl_;
  if (self.broken || !self.socket.is_open()) return ended();
  init::frame_header header{static_cast<std::uint32_t>(payload.size()), type,
                            static_cast<std::uint16_t>(descriptors.size()), id};
  const bool idle = self.queue.empty();
  self.queue.push_back({init::encode_header(header) + payload, 0, std::move(descriptors)});
  if (idle) self.write_queue();
  return {};
}

asio::awaitable<result<init_channel::frame>> init_channel::receive() {
  const auto self = impl_;
  for (;;) {
    if (auto f = self->next()) co_return std::move(*f);
    co_await self->socket.async_wait(asio::posix::stream_descriptor::wait_read,
                                     asio::as_tuple(asio::use_awaitable));
  }
}

std::optional<result<init_channel::frame>> init_channel::try_receive() {
  return impl_->next();
}

void init_channel::close() {
  if (!impl_->broken) impl_->broken = ended();
  if (!impl_->socket.is_open()) return;
  ::shutdown(impl_->socket.native_handle(), SHUT_RDWR);
  unwatch_and_close(impl_->socket);
  impl_->queue.clear();
}

}  // namespace ccbox
