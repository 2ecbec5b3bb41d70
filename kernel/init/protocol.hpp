// The protocol between the kernel of ccbox and ccbox-init: frames over a stream, with descriptors where the
// stream is a Unix socket. Shared by both sides, so it uses the standard library alone.
//
// Frame: u32 payload length, u16 type, u16 descriptor count, u64 id, payload; little-endian. Descriptors ride
// on the first byte of their frame (SCM_RIGHTS). Payload fields: u32 numbers, u64 numbers, strings as u32
// length + bytes, lists as u32 count + strings.
//
//   kernel → init                                        init → kernel
//   setup   {filter bytes, flags}                        ready    {version, pid as init sees itself}
//   exec    {flags, argv, env, cwd, rows, cols, limits}  started  {pid inside}; fd: pty master if flag pty
//           fds: stdin, stdout, stderr (as flagged)      failed   {stage, errno}
//   signal  {number}: to the command's process group     exited   {signalled, value}
//   listen  {number of ports}                            listening {list of port, has IPv6}; fds: of each
//                                                        port 127.0.0.1 and, if it has it, ::1
//   shutdown {grace ms}: TERM all, then KILL, then exit
//
// init answers exec with started or failed, and started is followed by exactly one exited. It answers listen
// with listening or failed, and grants it once, confined, and before the first exec: nobody but the session
// then listens in the namespace. End of the stream ends init, and with it everything in the enclosure; so
// does a payload that does not decode, so the kernel checks what it sends first. Decoders refuse: bytes too
// few or too many, lengths and counts that lie, unknown flags; exec with an empty argv, a NUL in a string, an
// env word that is not NAME=value, a cwd that is not absolute; over max_limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ccbox::init {

constexpr std::uint32_t protocol_version = 1;
constexpr std::size_t header_bytes = 16;
constexpr std::size_t max_payload_bytes = 8 << 20;
constexpr std::size_t max_descriptors = 8;
constexpr std::uint32_t max_limits = 32;  // there are 16 RLIMIT_* today
constexpr std::uint32_t max_listen_ports = max_descriptors / 2;

enum class frame_type : std::uint16_t {
  setup = 1,
  exec = 2,
  signal = 3,
  shutdown = 4,
  listen = 5,
  ready = 64,
  started = 65,
  failed = 66,
  exited = 67,
  listening = 68,
};

struct frame_header {
  std::uint32_t payload_bytes;
  frame_type type;
  std::uint16_t descriptors;
  std::uint64_t id;
};

// exec: which of the three descriptors are sent; one that is not sent comes from the pty, or else is
// /dev/null.
enum exec_flag : std::uint32_t {
  exec_stdin = 1u << 0,
  exec_stdout = 1u << 1,
  exec_stderr = 1u << 2,
  exec_pty = 1u << 3,
};

// setup
enum setup_flag : std::uint32_t {
  setup_unconfined = 1u << 0,  // backend none: not pid 1, no filter; become a subreaper
};

enum class exec_stage : std::uint32_t {
  descriptors = 1,
  pty = 2,
  fork = 3,
  limits = 4,
  chdir = 5,
  exec = 6,
  listen = 7
};

struct setup_message {
  std::string filter;  // struct sock_filter[]; empty only if unconfined
  std::uint32_t flags = 0;
};
struct exec_message {
  std::uint32_t flags = 0;
  std::vector<std::string> argv, env;  // env as NAME=value
  std::string cwd;
  std::uint32_t rows = 0, cols = 0;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> limits;  // RLIMIT_* number, value
};
struct ready_message {
  std::uint32_t version = 0, pid = 0;
};
struct failed_message {
  exec_stage stage = exec_stage::exec;
  std::uint32_t error_number = 0;
};
struct exited_message {
  bool signalled = false;
  std::uint32_t value = 0;
};
struct listening_message {
  struct port {
    std::uint16_t number = 0;
    bool has_v6 = false;
  };
  std::vector<port> ports;           // 1 to max_listen_ports
  std::size_t descriptors() const {  // that come along
    std::size_t count = 0;
    for (const auto& each : ports)
      count += each.has_v6 ? 2 : 1;
    return count;
  }
};

std::string encode_header(const frame_header& header);
std::optional<frame_header> decode_header(
    std::string_view sixteen_bytes);  // nothing: malformed or over a limit

std::string encode(const setup_message&);
std::string encode(const exec_message&);
std::string encode(const ready_message&);
std::string encode(const failed_message&);
std::string encode(const exited_message&);
std::string encode(const listening_message&);
std::string encode_number(std::uint32_t);  // signal, shutdown, started, listen

std::optional<setup_message> decode_setup(std::string_view payload);
std::optional<exec_message> decode_exec(std::string_view payload);
std::optional<ready_message> decode_ready(std::string_view payload);
std::optional<failed_message> decode_failed(std::string_view payload);
std::optional<exited_message> decode_exited(std::string_view payload);
std::optional<listening_message> decode_listening(std::string_view payload);
std::optional<std::uint32_t> decode_number(std::string_view payload);

}  // namespace ccbox::init
