#include "support/misbehaving_init.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "init/protocol.hpp"

namespace ccbox::test {
namespace {

using namespace init;

void send_bytes(const std::string& bytes, const std::vector<int>& descriptors = {}) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  std::array<char, CMSG_SPACE(sizeof(int) * 64)> control{};
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
    std::memcpy(CMSG_DATA(c), descriptors.data(), sizeof(int) * descriptors.size());
  }
  ::sendmsg(plan::channel_fd, &message, MSG_NOSIGNAL);
}

std::string frame_bytes(frame_type type, std::uint64_t id, const std::string& payload,
                        std::uint16_t descriptors = 0) {
  return encode_header({static_cast<std::uint32_t>(payload.size()), type, descriptors, id}) + payload;
}

// Returns the id of the next frame from the kernel, whatever it is.
std::uint64_t next_request() {
  std::string header(header_bytes, '\0');
  if (::recv(plan::channel_fd, header.data(), header.size(), MSG_WAITALL) !=
      static_cast<ssize_t>(header.size())) {
    ::_exit(0);
  }
  const auto decoded = decode_header(header);
  std::string payload(decoded->payload_bytes, '\0');
  if (!payload.empty()) ::recv(plan::channel_fd, payload.data(), payload.size(), MSG_WAITALL);
  return decoded->id;
}

void send_ready(std::uint32_t version = protocol_version) {
  send_bytes(frame_bytes(frame_type::ready, 0, encode(ready_message{version, 1})));
}

// A listening socket of the test's host; `port` is told.
int listening_socket(in_addr_t where, std::uint16_t& port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(where);
  socklen_t size = sizeof address;
  ::bind(fd, reinterpret_cast<sockaddr*>(&address), size);
  ::listen(fd, 1);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  port = ntohs(address.sin_port);
  return fd;
}

void answer_listen(const std::string& how, std::uint64_t id) {
  listening_message m;
  std::vector<int> sockets;
  for (int i = 0; i < (how == "listen-too-few" ? 1 : 2); ++i) {
    std::uint16_t port = 0;
    sockets.push_back(listening_socket(how == "listen-everywhere" ? INADDR_ANY : INADDR_LOOPBACK, port));
    m.ports.push_back({how == "listen-other-port" ? static_cast<std::uint16_t>(port ^ 1) : port, false});
  }
  if (how == "listen-no-socket") sockets[1] = ::open("/dev/null", O_RDWR);
  if (how == "listen-not-listening") sockets[1] = ::socket(AF_INET, SOCK_STREAM, 0);
  if (how == "listen-claims-v6") m.ports[1].has_v6 = true;
  if (how == "listen-v4-as-v6") {
    m.ports[1].has_v6 = true;
    sockets.push_back(sockets[1]);
  }
  send_bytes(frame_bytes(frame_type::listening, id, encode(m), static_cast<std::uint16_t>(sockets.size())),
             sockets);
}

[[noreturn]] void misbehave(const std::string& how) {
  const int null = ::open("/dev/null", O_RDWR);
  const std::string ready = encode(ready_message{protocol_version, 1});
  next_request();  // setup
  if (how == "silent") ::pause();
  if (how == "garbage") send_bytes("this is no frame, whatever else it may be");
  if (how == "other-version") send_ready(protocol_version + 1);
  if (how == "half-a-frame") {
    send_bytes(frame_bytes(frame_type::ready, 0, ready).substr(0, 20));
    ::_exit(0);
  }
  if (how == "too-long") send_bytes(encode_header({1 << 20, frame_type::ready, 0, 0}));
  if (how == "kernel-frame") send_bytes(frame_bytes(frame_type::exec, 0, ""));
  if (how == "descriptors-with-ready") send_bytes(frame_bytes(frame_type::ready, 0, ready, 1), {null});
  if (how == "unmentioned-descriptors") send_bytes(frame_bytes(frame_type::ready, 0, ready), {null});
  if (how == "missing-descriptors") send_bytes(frame_bytes(frame_type::ready, 0, ready, 1));
  if (how == "many-descriptors") {
    send_bytes(frame_bytes(frame_type::ready, 0, ready, 8), std::vector<int>(60, null));
  }
  if (how == "ready-without-payload") send_bytes(frame_bytes(frame_type::ready, 0, ""));
  if (how == "exec-before-ready") send_bytes(frame_bytes(frame_type::started, 1, encode_number(7)));

  // From here on the handshake is right and the first command meets the fault.
  if (how.starts_with("exec-")) {
    send_ready();
    const std::uint64_t id = next_request();
    const std::string started = frame_bytes(frame_type::started, id, encode_number(7));
    const std::string exited = frame_bytes(frame_type::exited, id, encode(exited_message{false, 0}));
    if (how == "exec-dies") ::_exit(3);
    if (how == "exec-unknown-id") send_bytes(frame_bytes(frame_type::started, id + 1, encode_number(7)));
    if (how == "exec-exited-first") send_bytes(exited);
    if (how == "exec-started-twice") send_bytes(started + started);
    if (how == "exec-exited-twice") send_bytes(started + exited + exited);
    if (how == "exec-ready-again") send_bytes(frame_bytes(frame_type::ready, 0, ready));
    if (how == "exec-two-terminals") {
      send_bytes(frame_bytes(frame_type::started, id, encode_number(7), 2), {null, null});
    }
    if (how == "exec-no-terminal") send_bytes(started);
    if (how == "exec-then-dies") {
      send_bytes(started);
      ::_exit(0);
    }
    if (how == "exec-byte-by-byte") {
      for (char c : started + exited)
        send_bytes(std::string(1, c));
    }
    if (how == "exec-ignores-shutdown") ::signal(SIGTERM, SIG_IGN);
  }
  if (how.starts_with("listen-")) {
    send_ready();
    const std::uint64_t id = next_request();
    if (how == "listen-dies") ::_exit(3);
    if (how == "listen-started")
      send_bytes(frame_bytes(frame_type::started, id, encode_number(7)));
    else
      answer_listen(how, id);
  }
  for (;;)
    ::pause();
}

plan base(const char* name) {
  plan p;
  p.plugin = name;
  p.kind = "none";
  p.unconfined = true;
  return p;
}

}  // namespace

std::string init_path() {
  return CCBOX_TEST_BINARY_DIR "/bin/ccbox-init";
}

plan unconfined_plan() {
  plan p = base("plain");
  p.argv = {init_path(), "--channel", std::to_string(plan::channel_fd)};
  return p;
}

plan misbehaving_plan(const std::string& how) {
  plan p = base("misbehaving");
  p.unconfined = false;  // it gets a filter like any other, and dies with us
  p.argv = {std::filesystem::read_symlink("/proc/self/exe"), "--no-skip",
            "--test-case=helper: misbehaving init"};
  p.env = {{"CCBOX_TEST_MISBEHAVE", how}};
  return p;
}

plan shell_plan(const std::string& script) {
  plan p = base("shell");
  p.unconfined = false;
  p.argv = {"/bin/sh", "-c", script};
  p.env = {{"PATH", "/usr/bin:/bin"}};
  return p;
}

TEST_CASE("helper: misbehaving init" * doctest::skip()) {
  if (const char* how = std::getenv("CCBOX_TEST_MISBEHAVE")) misbehave(how);
  FAIL("started by hand");
}

}  // namespace ccbox::test
