#include "support/init_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include "syscall_filter.hpp"

namespace ccbox::test {
namespace {

constexpr auto limit = std::chrono::seconds(10);
constexpr int limit_ms = 10000;
constexpr int channel_number = 3;

[[noreturn]] void die(const char* what) {
  dprintf(STDERR_FILENO, "%s: %s\n", what, strerrordesc_np(errno));
  _exit(99);
}

void write_text(const std::string& path, const std::string& text) {
  const unique_fd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file || write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw std::runtime_error("write " + path + ": " + std::strerror(errno));
}

void map_users(pid_t pid) {
  const auto base = "/proc/" + std::to_string(pid);
  if (geteuid() == 0) {
    write_text(base + "/uid_map", "0 0 4294967295");
    write_text(base + "/gid_map", "0 0 4294967295");
    return;
  }
  const auto own = [](unsigned id) { return std::to_string(id) + " " + std::to_string(id) + " 1"; };
  write_text(base + "/setgroups", "deny");
  write_text(base + "/uid_map", own(geteuid()));
  write_text(base + "/gid_map", own(getegid()));
}

void prepare_enclosure() {
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) die("make / private");
  if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) die("mount /proc");
  if (mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620") != 0)
    die("mount /dev/pts");
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (auto& word : words)
    out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

init_process::init_process(init_setting setting) : init_process(setting, options{}) {}

init_process::init_process(init_setting setting, options chosen) {
  if (chosen.program.empty()) chosen.program = CCBOX_TEST_BINARY_DIR "/bin/ccbox-init";
  if (chosen.argv.empty()) chosen.argv = {chosen.program, "--channel", std::to_string(channel_number)};
  start(setting, chosen);
  if (!chosen.complete_setup) return;
  init::setup_message setup;
  if (setting == init_setting::unconfined)
    setup.flags = init::setup_unconfined;
  else
    setup.filter = build_base_filter(filter_architecture::native, geteuid() == 0).value();
  send(init::frame_type::setup, 0, encode(setup));
  const auto ready = wait_for(init::frame_type::ready, 0);
  ready_ = init::decode_ready(ready.payload).value();
}

init_process::~init_process() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

void init_process::start(init_setting setting, const options& chosen) {
  int sockets[2], errors[2], go[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0 ||
      pipe2(errors, O_CLOEXEC | O_NONBLOCK) != 0 || pipe2(go, O_CLOEXEC) != 0)
    throw std::runtime_error("socketpair or pipe2");
  channel_.reset(sockets[0]);
  errors_.reset(errors[0]);
  const unique_fd theirs(sockets[1]), their_errors(errors[1]), go_read(go[0]);
  unique_fd go_write(go[1]);
  auto words = chosen.argv;
  const auto argv = pointers(words);
  char* const env[] = {nullptr};

  const bool enclosed = setting == init_setting::enclosed;
  const long namespaces = enclosed ? CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS : 0;
  pid_ = static_cast<pid_t>(syscall(SYS_clone, namespaces | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (pid_ < 0) throw std::runtime_error(std::string("clone: ") + std::strerror(errno));
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    char go_on;
    if (read(go_read.get(), &go_on, 1) != 1) _exit(98);
    dup2(their_errors.get(), STDERR_FILENO);
    if (enclosed) prepare_enclosure();
    setsid();
    const int channel = fcntl(theirs.get(), F_DUPFD, 100);
    if (dup2(channel, channel_number) < 0) die("dup2");
    close(channel);
    if (chosen.before_exec) chosen.before_exec();
    execve(chosen.program.c_str(), argv.data(), env);
    die("execve");
  }
  if (enclosed) map_users(pid_);
  if (write(go_write.get(), "x", 1) != 1) throw std::runtime_error("start of init");
}

init::exec_message init_process::command(std::vector<std::string> argv) {
  init::exec_message message;
  message.argv = std::move(argv);
  message.env = {"PATH=/usr/bin:/bin:/usr/sbin:/sbin"};
  message.cwd = "/";
  return message;
}

init::exec_message init_process::shell(const std::string& script) {
  return command({"sh", "-c", script});
}

void init_process::send(init::frame_type type, std::uint64_t id, const std::string& payload,
                        const std::vector<int>& fds) {
  send_bytes(init::encode_header({static_cast<std::uint32_t>(payload.size()), type,
                                  static_cast<std::uint16_t>(fds.size()), id}) +
                 payload,
             fds);
}

void init_process::send_bytes(const std::string& bytes, const std::vector<int>& fds) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    iovec data{const_cast<char*>(bytes.data()) + sent, bytes.size() - sent};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    std::vector<char> control(CMSG_SPACE(sizeof(int) * fds.size()));
    if (sent == 0 && !fds.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      auto* item = CMSG_FIRSTHDR(&message);
      item->cmsg_level = SOL_SOCKET;
      item->cmsg_type = SCM_RIGHTS;
      item->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
      std::memcpy(CMSG_DATA(item), fds.data(), sizeof(int) * fds.size());
    }
    const ssize_t wrote = sendmsg(channel_.get(), &message, MSG_NOSIGNAL);
    if (wrote < 0) give_up(std::string("send: ") + std::strerror(errno));
    sent += static_cast<std::size_t>(wrote);
  }
}

std::uint64_t init_process::exec(init::exec_message message, const std::vector<int>& fds) {
  const auto id = next_id_++;
  send(init::frame_type::exec, id, encode(message), fds);
  return id;
}

std::string init_process::read_exactly(std::size_t size, std::vector<unique_fd>& descriptors) {
  std::string bytes(size, '\0');
  std::size_t got = 0;
  while (got < size) {
    pollfd readable{channel_.get(), POLLIN, 0};
    if (poll(&readable, 1, limit_ms) != 1) give_up("nothing came from init in time");
    iovec data{bytes.data() + got, size - got};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 8)];
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t count = recvmsg(channel_.get(), &message, MSG_CMSG_CLOEXEC);
    if (count <= 0) give_up("the channel ended");
    got += static_cast<std::size_t>(count);
    for (auto* item = CMSG_FIRSTHDR(&message); item; item = CMSG_NXTHDR(&message, item)) {
      const std::size_t fds = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < fds; ++i) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(item) + i * sizeof(int), sizeof fd);
        descriptors.emplace_back(fd);
      }
    }
  }
  return bytes;
}

init_frame init_process::read_frame() {
  init_frame frame;
  const auto header = init::decode_header(read_exactly(init::header_bytes, frame.descriptors));
  if (!header) give_up("malformed header from init");
  frame.header = *header;
  if (frame.descriptors.size() != frame.header.descriptors) give_up("descriptors are missing");
  frame.payload = read_exactly(frame.header.payload_bytes, frame.descriptors);
  return frame;
}

init_frame init_process::wait_for(init::frame_type type, std::uint64_t id) {
  const auto fits = [&](const init_frame& frame) {
    return frame.header.id == id &&
           (frame.header.type == type || frame.header.type == init::frame_type::failed);
  };
  const auto kept = std::find_if(kept_.begin(), kept_.end(), fits);
  if (kept != kept_.end()) {
    auto frame = std::move(*kept);
    kept_.erase(kept);
    return frame;
  }
  for (;;) {
    auto frame = read_frame();
    if (fits(frame)) return frame;
    kept_.push_back(std::move(frame));
  }
}

init::exited_message init_process::wait_exit(std::uint64_t id) {
  const auto frame = wait_for(init::frame_type::exited, id);
  const auto exited = init::decode_exited(frame.payload);
  if (frame.header.type != init::frame_type::exited || !exited)
    give_up("a command did not start or exit properly");
  return *exited;
}

bool init_process::has_frame(init::frame_type type, std::uint64_t id) {
  for (;;) {
    pollfd readable{channel_.get(), POLLIN, 0};
    if (poll(&readable, 1, 0) != 1) break;
    kept_.push_back(read_frame());
  }
  return std::any_of(kept_.begin(), kept_.end(), [&](const init_frame& frame) {
    return frame.header.id == id && frame.header.type == type;
  });
}

int init_process::wait_end() {
  int status = 0;
  if (!eventually([&] { return waitpid(pid_, &status, WNOHANG) == pid_; }))
    give_up("init did not end in time");
  pid_ = -1;
  return status;
}

init_process::outcome init_process::run(init::exec_message message, const std::string& input) {
  const unique_fd out(memfd_create("output", MFD_CLOEXEC)), in(memfd_create("input", MFD_CLOEXEC));
  if (pwrite(in.get(), input.data(), input.size(), 0) != static_cast<ssize_t>(input.size())) give_up("input");
  message.flags |= init::exec_stdin | init::exec_stdout | init::exec_stderr;
  const auto id = exec(std::move(message), {in.get(), out.get(), out.get()});
  outcome result;
  const auto started = wait_for(init::frame_type::started, id);
  if (started.header.type == init::frame_type::failed) {
    result.failed = init::decode_failed(started.payload);
    return result;
  }
  result.pid_inside = static_cast<int>(init::decode_number(started.payload).value());
  result.exit = wait_exit(id);
  char buffer[65536];
  for (off_t at = 0;;) {
    const ssize_t got = pread(out.get(), buffer, sizeof buffer, at);
    if (got <= 0) break;
    result.output.append(buffer, static_cast<std::size_t>(got));
    at += got;
  }
  return result;
}

std::string init_process::error_output() {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = read(errors_.get(), buffer, sizeof buffer);
    if (got <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

void init_process::give_up(const std::string& what) {
  throw std::runtime_error(what + "; init: " + error_output());
}

bool eventually(const std::function<bool()>& fact) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!fact()) {
    if (std::chrono::steady_clock::now() > end) return false;
    poll(nullptr, 0, 5);
  }
  return true;
}

}  // namespace ccbox::test
