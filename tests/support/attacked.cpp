#include "support/attacked.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>

namespace ccbox::test {

namespace {

constexpr int limit_ms = 20000;

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what);
}

unique_fd open_strictly(const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;
  unique_fd fd(static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
  if (!fd) fail("open " + path + ": " + std::strerror(errno));
  return fd;
}

std::vector<std::pair<int, unique_fd>> open_plan(const plan& p) {
  std::vector<std::pair<int, unique_fd>> open;
  for (const auto& one : p.paths)
    open.emplace_back(one.number, open_strictly(one.host_path));
  for (const auto& one : p.files) {
    auto sealed = sealed_file(one.label, one.bytes);
    if (!sealed) fail(sealed.error().what);
    open.emplace_back(one.number, std::move(*sealed));
  }
  const std::string attacker = CCBOX_TEST_BINARY_DIR "/bin/attacker";
  unique_fd program(::open(attacker.c_str(), O_RDONLY | O_CLOEXEC));
  if (!program) fail("open " + attacker + ": " + std::strerror(errno));
  open.emplace_back(plan::init_fd, std::move(program));
  return open;
}

child spawn_plan(const plan& p, const std::vector<std::pair<int, unique_fd>>& open, int channel,
                 int error_fd) {
  spawn_request request;
  request.argv = p.argv;
  request.env = p.env;
  request.identity_userns = p.identity_userns;
  request.descriptors = {{channel, plan::channel_fd}, {error_fd, STDERR_FILENO}};
  for (const auto& [number, fd] : open)
    request.descriptors.emplace_back(fd.get(), number);
  auto started = spawn(request);
  if (!started) fail(started.error().what);
  return std::move(*started);
}

std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t count; (count = ::read(fd, buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<std::size_t>(count));
  return text;
}

}  // namespace

planned_request request_for_this_caller(std::vector<planned_rule> rules) {
  planned_request request;
  request.uid = ::geteuid();
  request.gid = ::getegid();
  request.home = "/home/agent";
  for (const char* root : {"/usr", "/bin", "/lib", "/lib64"}) {
    auto rule = as_found(mount_rule(root, CCBOX_RULE_SYSTEM | CCBOX_RULE_READ_ONLY));
    if (rule.flags & CCBOX_RULE_EXISTS) request.rules.push_back(std::move(rule));
  }
  for (auto& rule : rules)
    request.rules.push_back(std::move(rule));
  return request;
}

child start_launcher(const plan& p, int channel, int error_fd) {
  return spawn_plan(p, open_plan(p), channel, error_fd);
}

attacked_enclosure::attacked_enclosure(const planned_request& request,
                                       const std::function<void()>& before_start) {
  const built_plugin backend("bubblewrap");
  auto answer = backend.ask(request);
  if (answer.status != CCBOX_OK) fail(answer.error);
  plan_ = std::move(answer.planned);
  const auto open = open_plan(plan_);
  if (before_start) before_start();
  int ends[2], errors[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0 || ::pipe2(errors, O_CLOEXEC) != 0)
    fail(std::strerror(errno));
  channel_.reset(ends[0]);
  unique_fd theirs(ends[1]), error_read(errors[0]), error_write(errors[1]);
  child_ = std::make_unique<child>(spawn_plan(plan_, open, theirs.get(), error_write.get()));
  theirs.reset();
  error_write.reset();
  try {
    ask({"hello"});
  } catch (const std::runtime_error&) {
    fail("the enclosure did not start: " + read_all(error_read.get()));
  }
}

attacked_enclosure::~attacked_enclosure() {
  if (child_) kill();
}

void attacked_enclosure::kill() {
  if (auto sent = child_->signal(SIGKILL); !sent) return;
  (void)child_->wait();
  pollfd wait{channel_.get(), 0, 0};
  ::poll(&wait, 1, limit_ms);
  child_.reset();
}

attacked_enclosure::reply attacked_enclosure::ask(const std::vector<std::string>& words) const {
  std::string message;
  for (const auto& word : words)
    message.append(word).push_back('\0');
  if (::send(channel_.get(), message.data(), message.size(), MSG_NOSIGNAL) < 0) fail("the attacker is gone");
  pollfd wait{channel_.get(), POLLIN, 0};
  if (::poll(&wait, 1, limit_ms) != 1) fail("the attacker does not answer");
  std::string answer(65536, '\0');
  const auto count = ::recv(channel_.get(), answer.data(), answer.size(), 0);
  if (count < 4) fail("the attacker is gone");
  answer.resize(static_cast<std::size_t>(count));
  std::uint32_t error = 0;
  std::memcpy(&error, answer.data(), sizeof error);
  return {static_cast<int>(error), answer.substr(sizeof error)};
}

std::map<std::string, std::string> host_listing(const std::string& root) {
  std::map<std::string, std::string> found;
  const auto add = [&](const std::filesystem::path& path) {
    struct stat s {};
    if (::lstat(path.c_str(), &s) != 0) return;
    std::ostringstream text;
    text << std::oct << s.st_mode << std::dec << " " << s.st_uid << " " << s.st_nlink << " " << s.st_ino
         << " " << s.st_size << " " << s.st_mtim.tv_sec << "." << s.st_mtim.tv_nsec << " " << s.st_ctim.tv_sec
         << "." << s.st_ctim.tv_nsec;
    if (S_ISREG(s.st_mode)) text << " " << std::ifstream(path, std::ios::binary).rdbuf();
    found[path.string()] = text.str();
  };
  add(root);
  for (const auto& one : std::filesystem::recursive_directory_iterator(root))
    add(one.path());
  return found;
}

}  // namespace ccbox::test
