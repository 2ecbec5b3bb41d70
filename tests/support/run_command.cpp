#include "support/run_command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace ccbox::test {

using clock = std::chrono::steady_clock;

namespace {

[[noreturn]] void broken(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

// While it lives no signal reaches this thread: a child that is hit between fork and exec must not run our
// handlers.
class signals_held {
 public:
  signals_held() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~signals_held() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  signals_held(const signals_held&) = delete;
  signals_held& operator=(const signals_held&) = delete;

 private:
  sigset_t before_;
};

std::pair<unique_fd, unique_fd> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) broken("pipe2");
  return {unique_fd(ends[0]), unique_fd(ends[1])};
}

unique_fd open_pidfd(pid_t pid) {
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) broken("pidfd_open");
  return unique_fd(fd);
}

int left(clock::time_point until) {
  const auto ms = std::chrono::duration_cast<milliseconds>(until - clock::now()).count();
  return static_cast<int>(std::max<long long>(ms, 0));
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& word : words)
    out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> environment_of(const run_options& options) {
  std::vector<std::string> env;
  if (options.env) {
    env = *options.env;
  } else {
    for (char** entry = environ; *entry; ++entry)
      env.emplace_back(*entry);
  }
  for (const std::string& entry : options.extra_env) {
    const std::string name = entry.substr(0, entry.find('=') + 1);
    env.erase(
        std::remove_if(env.begin(), env.end(), [&](const std::string& e) { return e.starts_with(name); }),
        env.end());
    env.push_back(entry);
  }
  return env;
}

void reset_signals() {
  for (int number = 1; number < NSIG; ++number)
    ::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// The program's path, as execvp would find it: looked up before the fork, with the test's PATH.
std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  std::istringstream directories(std::getenv("PATH") ? std::getenv("PATH") : "/usr/bin:/bin");
  for (std::string directory; std::getline(directories, directory, ':');) {
    if (::access((directory + "/" + name).c_str(), X_OK) == 0) return directory + "/" + name;
  }
  throw std::runtime_error("no program " + name);
}

int code_of(const siginfo_t& info) {
  return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

}  // namespace

running running::start(const std::vector<std::string>& argv, const run_options& options) {
  auto [in_read, in_write] = make_pipe();
  auto [out_read, out_write] = make_pipe();
  auto [err_read, err_write] = make_pipe();
  const std::string program = find_program(argv.at(0));
  const auto argument_pointers = pointers(argv);
  const auto env = environment_of(options);
  const auto env_pointers = pointers(env);
  const signals_held held;
  const pid_t pid = ::fork();
  if (pid < 0) broken("fork");
  if (pid == 0) {
    ::setpgid(0, 0);
    reset_signals();
    ::dup2(in_read.get(), 0);
    ::dup2(out_write.get(), 1);
    ::dup2(err_write.get(), 2);
    for (const auto& [ours, theirs] : options.inherit)
      ::dup2(ours, theirs);
    for (const int fd : options.closed)
      ::close(fd);
    if (!options.cwd.empty() && ::chdir(options.cwd.c_str()) != 0) ::_exit(99);
    ::execve(program.c_str(), argument_pointers.data(), env_pointers.data());
    ::_exit(98);
  }
  running r;
  r.pid_ = pid;
  r.pidfd_ = open_pidfd(pid);
  r.in_ = std::move(in_write);
  r.out_ = std::move(out_read);
  r.err_ = std::move(err_read);
  r.input_ = options.input;
  r.limit_ = options.limit;
  if (r.input_.empty())
    r.in_.reset();
  else
    ::fcntl(r.in_.get(), F_SETFL, O_NONBLOCK);
  return r;
}

running::running(running&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      in_(std::move(other.in_)),
      out_(std::move(other.out_)),
      err_(std::move(other.err_)),
      input_(std::move(other.input_)),
      limit_(other.limit_),
      result_(std::move(other.result_)) {}

running::~running() {
  if (pid_ < 0) return;
  ::kill(-pid_, SIGKILL);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED);
}

void running::signal(int number) const {
  ::syscall(SYS_pidfd_send_signal, pidfd_.get(), number, nullptr, 0);
}

void running::close_output() {
  out_.reset();
}

// Until both outputs have ended and the program too, or `text` was seen.
bool running::pump(clock::time_point until, const std::string* text) {
  std::vector<char> buffer(65536);
  bool ended = false;
  for (;;) {
    if (text &&
        (result_.out.find(*text) != std::string::npos || result_.err.find(*text) != std::string::npos)) {
      return true;
    }
    if (ended && !out_ && !err_) return !text;
    pollfd watched[] = {{out_.get(), POLLIN, 0},
                        {err_.get(), POLLIN, 0},
                        {in_.get(), POLLOUT, 0},
                        {ended ? -1 : pidfd_.get(), POLLIN, 0}};
    const int ready = ::poll(watched, 4, left(until));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    for (int i = 0; i < 2; ++i) {
      if (!watched[i].revents) continue;
      unique_fd& from = i == 0 ? out_ : err_;
      const ssize_t n = ::read(from.get(), buffer.data(), buffer.size());
      if (n <= 0)
        from.reset();
      else
        (i == 0 ? result_.out : result_.err).append(buffer.data(), static_cast<std::size_t>(n));
    }
    if (watched[2].revents) {
      const ssize_t n = ::write(in_.get(), input_.data(), input_.size());
      if (n > 0) input_.erase(0, static_cast<std::size_t>(n));
      if (input_.empty() || (n < 0 && errno != EAGAIN)) in_.reset();
    }
    if (watched[3].revents) ended = true;
  }
}

bool running::wait_for(const std::string& text, milliseconds limit) {
  return pump(clock::now() + limit, &text);
}

finished running::wait() {
  // Writing to a program that is gone must not end the test.
  ::signal(SIGPIPE, SIG_IGN);
  result_.timed_out = !pump(clock::now() + limit_, nullptr);
  if (result_.timed_out) ::kill(-pid_, SIGKILL);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED);
  pid_ = -1;
  result_.code = code_of(info);
  result_.signalled = info.si_code != CLD_EXITED;
  return std::move(result_);
}

finished run(const std::vector<std::string>& argv, const run_options& options) {
  return running::start(argv, options).wait();
}

on_terminal on_terminal::start(const std::vector<std::string>& argv, unsigned rows, unsigned cols) {
  return start(argv, rows, cols, where{});
}

on_terminal on_terminal::start(const std::vector<std::string>& argv, unsigned rows, unsigned cols,
                               where which) {
  on_terminal t;
  t.master_ = unique_fd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!t.master_ || ::grantpt(t.master_.get()) != 0 || ::unlockpt(t.master_.get()) != 0)
    broken("posix_openpt");
  char name[64];
  if (::ptsname_r(t.master_.get(), name, sizeof name) != 0) broken("ptsname_r");
  t.slave_ = unique_fd(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!t.slave_) broken("open the terminal");
  t.resize(rows, cols);
  const std::string program = find_program(argv.at(0));
  const auto argument_pointers = pointers(argv);
  const signals_held held;
  t.pid_ = ::fork();
  if (t.pid_ < 0) broken("fork");
  if (t.pid_ == 0) {
    ::setsid();
    reset_signals();
    ::ioctl(t.slave_.get(), TIOCSCTTY, 0);
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ::dup2(which.in ? t.slave_.get() : null, 0);
    ::dup2(which.out ? t.slave_.get() : which.out_fd >= 0 ? which.out_fd : null, 1);
    ::dup2(which.err ? t.slave_.get() : null, 2);
    ::execve(program.c_str(), argument_pointers.data(), environ);
    ::_exit(98);
  }
  t.pidfd_ = open_pidfd(t.pid_);
  return t;
}

on_terminal::on_terminal(on_terminal&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      master_(std::move(other.master_)),
      slave_(std::move(other.slave_)),
      screen_(std::move(other.screen_)),
      seen_(other.seen_) {}

on_terminal::~on_terminal() {
  if (pid_ < 0) return;
  signal(SIGKILL);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED);
}

void on_terminal::signal(int number) const {
  ::syscall(SYS_pidfd_send_signal, pidfd_.get(), number, nullptr, 0);
}

void on_terminal::type(const std::string& keys) const {
  if (::write(master_.get(), keys.data(), keys.size()) != static_cast<ssize_t>(keys.size())) broken("type");
}

void on_terminal::resize(unsigned rows, unsigned cols) const {
  const winsize size{static_cast<unsigned short>(rows), static_cast<unsigned short>(cols), 0, 0};
  if (::ioctl(master_.get(), TIOCSWINSZ, &size) != 0) broken("TIOCSWINSZ");
}

bool on_terminal::read_some(clock::time_point until) {
  char buffer[65536];
  for (;;) {
    pollfd watched{master_.get(), POLLIN, 0};
    const int ready = ::poll(&watched, 1, left(until));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t n = ::read(master_.get(), buffer, sizeof buffer);
    if (n <= 0) return false;
    screen_.append(buffer, static_cast<std::size_t>(n));
    return true;
  }
}

bool on_terminal::wait_for(const std::string& text, milliseconds limit) {
  const auto until = clock::now() + limit;
  for (;;) {
    const auto at = screen_.find(text, seen_);
    if (at != std::string::npos) {
      seen_ = at + text.size();
      return true;
    }
    if (!read_some(until)) return false;
  }
}

int on_terminal::wait(milliseconds limit) {
  const auto until = clock::now() + limit;
  for (;;) {
    pollfd watched[] = {{pidfd_.get(), POLLIN, 0}, {master_.get(), POLLIN, 0}};
    const int ready = ::poll(watched, 2, left(until));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return -1;
    if (watched[1].revents & POLLIN) {
      read_some(until);
      continue;
    }
    if (!watched[0].revents) continue;
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED);
    pid_ = -1;
    return code_of(info);
  }
}

bool on_terminal::wait_until_stopped(milliseconds limit) {
  return eventually(
      [&] {
        siginfo_t info{};
        return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
               info.si_pid == pid_;
      },
      limit);
}

bool on_terminal::in_raw_mode() const {
  termios modes{};
  return ::tcgetattr(slave_.get(), &modes) == 0 && (modes.c_lflag & (ICANON | ISIG | ECHO)) == 0;
}

std::string ccbox_program() {
  return CCBOX_TEST_BINARY_DIR "/bin/ccbox";
}

bool poll_pause() {
  return ::poll(nullptr, 0, 5) == 0;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool exists(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

std::vector<pid_t> processes_with(const std::string& marker) {
  std::vector<pid_t> out;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const pid_t pid = static_cast<pid_t>(std::stol(name));
    if (pid != ::getpid() && read_file("/proc/" + name + "/cmdline").find(marker) != std::string::npos) {
      out.push_back(pid);
    }
  }
  return out;
}

}  // namespace ccbox::test
