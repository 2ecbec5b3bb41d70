#include "trial.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "descriptor.hpp"
#include "host_tree.hpp"
#include "small_file.hpp"
#include "tools.hpp"
#include "view.hpp"

namespace ccbox::bubblewrap {

namespace {

constexpr int channel_fd = 3, init_fd = 4, first_fd = 5;

[[noreturn]] void fail(const std::string& what) {
  throw plugin::failure(CCBOX_FAILED, what + ": " + std::strerror(errno));
}

// Above every number that the child gives away, so that no dup2 there hits a source.
descriptor lifted(int fd, const std::string& what) {
  const descriptor low(fd);
  if (fd < 0) fail(what);
  descriptor high(::fcntl(fd, F_DUPFD_CLOEXEC, 100));
  if (high.get() < 0) fail(what);
  return high;
}

struct recorded_plan {
  std::vector<std::string> argv;
  std::vector<descriptor> descriptors;  // for the numbers from channel_fd on
  bool identity = false;
};

std::int32_t last_number(const recorded_plan& plan) {
  return channel_fd + static_cast<std::int32_t>(plan.descriptors.size()) - 1;
}

// The sink of the ABI, so that the trial goes through the very code that plans launches.
ccbox_plan_sink sink_into(recorded_plan& plan) {
  ccbox_plan_sink sink{};
  sink.size = sizeof sink;
  sink.ctx = &plan;
  sink.argument = [](void* ctx, ccbox_str text) {
    static_cast<recorded_plan*>(ctx)->argv.emplace_back(plugin::view(text));
  };
  sink.environment = [](void*, ccbox_str, ccbox_str) {};
  sink.file = [](void* ctx, ccbox_str label, ccbox_str bytes) -> std::int32_t {
    auto* p = static_cast<recorded_plan*>(ctx);
    const std::string name(plugin::view(label));
    auto fd = lifted(::memfd_create(name.c_str(), MFD_CLOEXEC), "memfd_create");
    if (::write(fd.get(), bytes.ptr, bytes.len) != static_cast<ssize_t>(bytes.len)) fail("write " + name);
    ::lseek(fd.get(), 0, SEEK_SET);
    p->descriptors.push_back(std::move(fd));
    return last_number(*p);
  };
  sink.open_path = [](void* ctx, ccbox_str path) -> std::int32_t {
    auto* p = static_cast<recorded_plan*>(ctx);
    const std::string name(plugin::view(path));
    p->descriptors.push_back(lifted(::open(name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC), "open " + name));
    return last_number(*p);
  };
  sink.layer = [](void*, std::size_t, ccbox_str) {};
  sink.enforces = [](void*, std::uint64_t) {};
  sink.flags = [](void* ctx, std::uint32_t flags) {
    static_cast<recorded_plan*>(ctx)->identity = (flags & CCBOX_PLAN_IDENTITY_USERNS) != 0;
  };
  return sink;
}

// What any dynamically linked program needs of the root directory.
recorded_plan plan_trial(const host_facilities& host) {
  const real_host_tree tree;
  std::vector<ccbox_rule> rules;
  static constexpr std::string_view roots[] = {"/usr",   "/bin",    "/lib", "/lib32",
                                               "/lib64", "/libx32", "/nix", "/gnu"};
  for (const auto root : roots) {
    const auto type = tree.type(std::string(root));
    if (type != node_type::directory && type != node_type::linked) continue;
    const std::uint32_t what = type == node_type::directory ? CCBOX_RULE_DIRECTORY : CCBOX_RULE_SYMLINK;
    const auto path = plugin::str(root);
    rules.push_back({CCBOX_KIND_MOUNT,
                     CCBOX_RULE_READ_ONLY | CCBOX_RULE_EXISTS | CCBOX_RULE_SYSTEM | what,
                     CCBOX_RULE_FS_BINDS_ONLY,
                     path,
                     path,
                     {}});
  }
  ccbox_plan_request request{};
  request.size = sizeof request;
  request.rule_stride = sizeof(ccbox_rule);
  request.rules = rules.data();
  request.rule_count = rules.size();
  request.workdir = plugin::str("/");
  request.home = plugin::str("/run/ccbox/home");
  request.tmpdir = plugin::str("/tmp");
  request.network = CCBOX_NETWORK_PROXY_ONLY;
  request.uid = ::geteuid();
  request.gid = ::getegid();
  request.channel_fd = channel_fd;
  request.init_fd = init_fd;

  recorded_plan plan;
  const auto command = find_tool("true", {});
  plan.descriptors.push_back(lifted(::open("/dev/null", O_RDWR | O_CLOEXEC), "open /dev/null"));
  plan.descriptors.push_back(
      lifted(::open(command.c_str(), O_RDONLY | O_CLOEXEC), "open the program 'true'"));
  static_assert(first_fd == init_fd + 1);
  const auto table = sink_into(plan);
  const plugin::plan_request asked(&request);
  plugin::plan_sink sink(&table);
  write_arguments(asked, host, view(asked, tree), std::nullopt, sink);
  return plan;
}

// "inside outside count" lines of our own map, every id mapped to itself.
std::string identity_map(const char* path) {
  const auto own = read_small_file(path);
  std::string map;
  unsigned long inside = 0, outside = 0, count = 0;
  int used = 0;
  for (const char* at = own.c_str(); std::sscanf(at, "%lu %lu %lu%n", &inside, &outside, &count, &used) == 3;
       at += used)
    map += std::to_string(inside) + " " + std::to_string(inside) + " " + std::to_string(count) + "\n";
  return map;
}

bool write_map(pid_t pid, const char* name) {
  const auto map = identity_map((std::string("/proc/self/") + name).c_str());
  const descriptor fd(::open(("/proc/" + std::to_string(pid) + "/" + name).c_str(), O_WRONLY | O_CLOEXEC));
  return fd.get() >= 0 && ::write(fd.get(), map.data(), map.size()) == static_cast<ssize_t>(map.size());
}

// In the child of a process that may have threads: system calls only, nothing that allocates.
[[noreturn]] void become(const std::vector<std::pair<int, int>>& moves, char* const* argv, int error_fd,
                         int ready_fd, int go_fd) {
  const auto die = [](const char* text) {
    (void)!::write(STDERR_FILENO, text, std::strlen(text));
    ::_exit(1);
  };
  ::dup2(error_fd, STDERR_FILENO);
  // bwrap's child waits for its parent without a limit: killing them together is the only way to lose
  // neither. For the same reason there is no parent-death signal; left alone, `true` ends by itself.
  ::setsid();
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (ready_fd >= 0) {
    if (::unshare(CLONE_NEWUSER) != 0)
      die(errno == EPERM    ? "user namespace: Operation not permitted\n"
          : errno == ENOSPC ? "user namespace: max_*_namespaces exceeded\n"
                            : "user namespace: does not support user namespaces\n");
    char byte = 0;
    if (::write(ready_fd, &byte, 1) != 1 || ::read(go_fd, &byte, 1) != 1) ::_exit(1);
    if (byte != 'g') die("writing uid_map: Operation not permitted\n");
  }
  for (const auto& [from, to] : moves)
    if (::dup2(from, to) < 0) die("dup2 failed\n");
  ::syscall(SYS_close_range, static_cast<unsigned>(moves.back().second + 1), ~0U, 0U);
  char* const environment[] = {nullptr};
  ::execve(argv[0], argv, environment);
  die("cannot execute bwrap\n");
  ::_exit(127);
}

std::array<descriptor, 2> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail("pipe");
  descriptor low_write(ends[1]);
  auto read_end = lifted(ends[0], "pipe");
  return {std::move(read_end), lifted(low_write.release(), "pipe")};
}

void collect(int error_fd, pid_t pid, unsigned limit_ms, trial_outcome& outcome) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  std::array<char, 4096> buffer{};
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    pollfd wait{error_fd, POLLIN, 0};
    const int ready = left > 0 ? ::poll(&wait, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      outcome.timed_out = true;
      ::kill(-pid, SIGKILL);
      break;
    }
    const auto count = ::read(error_fd, buffer.data(), buffer.size());
    if (count <= 0) break;
    if (outcome.stderr_text.size() < 65536)
      outcome.stderr_text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  outcome.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  outcome.succeeded = !outcome.timed_out && outcome.code == 0;
}

}  // namespace

trial_outcome run_trial(const host_facilities& host, unsigned limit_ms) {
  auto plan = plan_trial(host);
  std::vector<char*> argv;
  for (auto& word : plan.argv)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::pair<int, int>> moves;
  for (int to : {STDIN_FILENO, STDOUT_FILENO})
    moves.emplace_back(plan.descriptors.front().get(), to);
  int number = channel_fd;
  for (const auto& fd : plan.descriptors)
    moves.emplace_back(fd.get(), number++);

  auto errors = make_pipe(), ready = make_pipe(), go = make_pipe();
  // Not fork(): what others do after it, as the thread sanitizer starts a thread, is not for a child that
  // becomes bwrap.
  const pid_t pid = ::_Fork();
  if (pid < 0) fail("fork");
  if (pid == 0) become(moves, argv.data(), errors[1].get(), plan.identity ? ready[1].get() : -1, go[0].get());
  for (auto* end : {&errors[1], &ready[1], &go[0]})
    end->close();
  if (plan.identity) {
    char byte = 0;
    if (::read(ready[0].get(), &byte, 1) == 1) {
      byte = write_map(pid, "uid_map") && write_map(pid, "gid_map") ? 'g' : 'n';
      (void)!::write(go[1].get(), &byte, 1);
    }
  }
  trial_outcome outcome;
  collect(errors[0].get(), pid, limit_ms, outcome);
  return outcome;
}

}  // namespace ccbox::bubblewrap
