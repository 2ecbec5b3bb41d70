#include "terminal_relay.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <exception>
#include <string>
#include <string_view>

#include "log.hpp"
#include "output.hpp"

namespace ccbox {

namespace asio = boost::asio;
using asio_error = boost::system::error_code;

namespace {

constexpr std::chrono::milliseconds background_interval{200};
constexpr std::size_t chunk_bytes = 65536;

// What a signal handler may need: plain data only.
struct saved_modes {
  volatile std::sig_atomic_t active = 0;
  int fd = -1;
  termios modes{};
};
saved_modes saved;

// From the background tcsetattr would stop this process, unless SIGTTOU is blocked.
void set_modes(int fd, const termios& modes) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTTOU);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  ::tcsetattr(fd, TCSANOW, &modes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void restore_and_die(int number) {
  if (saved.active) ::tcsetattr(saved.fd, TCSANOW, &saved.modes);
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(number, &standard, nullptr);
  ::raise(number);
}

// The signals that would end this program without running a destructor; those it handles are not among them.
void restore_on_fatal_signals() {
  for (const int number : {SIGABRT, SIGALRM, SIGBUS, SIGFPE, SIGILL, SIGIO, SIGPROF, SIGPWR, SIGSEGV,
                           SIGSTKFLT, SIGSYS, SIGTRAP, SIGVTALRM, SIGXCPU, SIGXFSZ}) {
    struct sigaction action {};
    ::sigaction(number, nullptr, &action);
    if (action.sa_handler != SIG_DFL) continue;
    action.sa_handler = restore_and_die;
    action.sa_flags = SA_RESETHAND | SA_NODEFER;
    ::sigaction(number, &action, nullptr);
  }
}

}  // namespace

unique_fd reopen_terminal(int fd) {
  constexpr int flags = O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK;
  char name[64];
  if (::ttyname_r(fd, name, sizeof name) == 0) {
    unique_fd own(::open(name, flags));
    if (own) return own;
  }
  // A terminal of somebody else (su) opens under this name all the same, if it is the controlling one.
  if (::tcgetsid(fd) == ::getsid(0)) {
    unique_fd own(::open("/dev/tty", flags));
    if (own) return own;
  }
  return unique_fd(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

std::array<bool, 3> standard_terminals() {
  return {::isatty(0) == 1, ::isatty(1) == 1, ::isatty(2) == 1};
}

struct terminal_relay::impl : std::enable_shared_from_this<terminal_relay::impl> {
  explicit impl(asio::any_io_executor e) : input(e), output(e), master(e), idle(e), drained(e) {}

  bool foreground() const { return ::tcgetpgrp(tty.get()) == ::getpgrp(); }

  void enter() {
    if (!reads || paused || saved.active || !foreground()) return;
    if (!raw_wanted) return;
    termios modes{};
    if (::tcgetattr(tty.get(), &modes) != 0) return;
    saved.modes = modes;
    saved.fd = tty.get();
    saved.active = 1;
    ::cfmakeraw(&modes);
    set_modes(tty.get(), modes);
  }

  void leave() {
    if (!saved.active) return;
    set_modes(tty.get(), saved.modes);
    saved.active = 0;
  }

  // May what is typed be read now?
  bool may_read() const {
    if (paused || !foreground()) return false;
    termios modes{};
    if (::tcgetattr(tty.get(), &modes) != 0) return false;
    const bool canonical = (modes.c_lflag & ICANON) != 0;
    return raw_wanted || canonical;
  }

  asio::awaitable<bool> write_to(asio::posix::stream_descriptor& to, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(to.native_handle(), bytes.data(), bytes.size());
      if (n >= 0) {
        bytes.remove_prefix(static_cast<std::size_t>(n));
        continue;
      }
      if (errno == EINTR) continue;
      if (errno != EAGAIN) co_return false;
      asio_error ec;
      co_await to.async_wait(asio::posix::stream_descriptor::wait_write,
                             asio::redirect_error(asio::use_awaitable, ec));
      if (ec) co_return false;
    }
    co_return true;
  }

  asio::awaitable<void> pump_input() {
    char buffer[4096];
    while (!stopped) {
      asio_error ec;
      if (!may_read()) {
        // No signal tells a process that it was brought to the foreground, or that another gave the terminal
        // back.
        idle.expires_after(background_interval);
        co_await idle.async_wait(asio::redirect_error(asio::use_awaitable, ec));
        enter();
        continue;
      }
      co_await input.async_wait(asio::posix::stream_descriptor::wait_read,
                                asio::redirect_error(asio::use_awaitable, ec));
      if (ec || stopped) co_return;
      if (!may_read()) continue;
      const ssize_t n = ::read(input.native_handle(), buffer, sizeof buffer);
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (n < 0) co_return;
      if (n == 0) {
        // Ctrl-D in line mode: the line discipline inside turns its own character into the end of the file.
        termios inside{};
        if (raw_wanted || ::tcgetattr(master.native_handle(), &inside) != 0) co_return;
        const char end = static_cast<char>(inside.c_cc[VEOF]);
        if (!co_await write_to(master, {&end, 1})) co_return;
        continue;
      }
      if (!co_await write_to(master, {buffer, static_cast<std::size_t>(n)})) co_return;
    }
  }

  asio::awaitable<void> pump_output() {
    std::string buffer(chunk_bytes, '\0');
    bool readable = true;  // the terminal can vanish; the command must not block on a pty that nobody empties
    for (;;) {
      const ssize_t n = ::read(master.native_handle(), buffer.data(), buffer.size());
      if (n > 0) {
        const std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
        if (readable) readable = co_await write_to(output, bytes);
        if (seen) seen(bytes);
        continue;
      }
      if (n == 0 || (errno != EAGAIN && errno != EINTR)) break;  // EIO: nobody has the other side open
      asio_error ec;
      co_await master.async_wait(asio::posix::stream_descriptor::wait_read,
                                 asio::redirect_error(asio::use_awaitable, ec));
      if (ec) break;
    }
    output_done = true;
    drained.cancel();
  }

  unique_fd tty;  // for its modes and size
  std::function<void(std::string_view)> seen;
  bool reads = false, raw_wanted = false, paused = false, stopped = false, output_done = false;
  asio::posix::stream_descriptor input, output, master;
  asio::steady_timer idle, drained;
};

terminal_relay::terminal_relay() = default;

result<std::unique_ptr<terminal_relay>> terminal_relay::open(asio::any_io_executor executor,
                                                             std::array<bool, 3> terminals) {
  std::unique_ptr<terminal_relay> relay(new terminal_relay);
  relay->impl_ = std::make_shared<impl>(executor);
  impl& self = *relay->impl_;
  const int shown_on = terminals[1] ? 1 : terminals[2] ? 2 : 0;
  unique_fd output = reopen_terminal(shown_on);
  unique_fd input = reopen_terminal(terminals[0] ? 0 : shown_on);
  self.tty = unique_fd(::fcntl(terminals[0] ? 0 : shown_on, F_DUPFD_CLOEXEC, 3));
  if (!input || !output || !self.tty) return system_error("open", "the terminal", errno);
  self.reads = terminals[0];
  self.raw_wanted = terminals[0] && terminals[1];
  self.output.assign(output.release());
  self.input.assign(input.release());
  return relay;
}

terminal_relay::~terminal_relay() {
  impl_->stopped = true;
  impl_->leave();
  asio_error ignored;
  impl_->idle.cancel();
  impl_->input.close(ignored);
  impl_->output.close(ignored);
  impl_->master.close(ignored);
}

window_size terminal_relay::size() const {
  winsize size{};
  if (::ioctl(impl_->tty.get(), TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return {};
  return {size.ws_row, size.ws_col};
}

void terminal_relay::start(unique_fd pty_master, std::function<void(std::string_view)> seen) {
  impl& self = *impl_;
  self.seen = std::move(seen);
  if (self.reads && !self.raw_wanted) {
    // The caller's terminal shows what is typed in line mode; the one inside must not show it again.
    termios modes{};
    if (::tcgetattr(pty_master.get(), &modes) == 0) {
      modes.c_lflag &= ~static_cast<tcflag_t>(ECHO);
      ::tcsetattr(pty_master.get(), TCSANOW, &modes);
    }
  }
  ::fcntl(pty_master.get(), F_SETFL, ::fcntl(pty_master.get(), F_GETFL) | O_NONBLOCK);
  self.master.assign(pty_master.release());
  resized();  // a change since size() was asked told nobody
  restore_on_fatal_signals();
  self.enter();
  const auto log_failure = [keep = impl_](std::exception_ptr failure) {
    if (failure) log_event(log_level::error, "terminal_relay");
  };
  if (self.reads) asio::co_spawn(self.input.get_executor(), self.pump_input(), log_failure);
  asio::co_spawn(self.input.get_executor(), self.pump_output(), log_failure);
}

void terminal_relay::resized() {
  const window_size now = size();
  const winsize inside{static_cast<unsigned short>(now.rows), static_cast<unsigned short>(now.cols), 0, 0};
  if (impl_->master.is_open()) ::ioctl(impl_->master.native_handle(), TIOCSWINSZ, &inside);
}

void terminal_relay::pause() {
  impl_->paused = true;
  impl_->leave();
}

void terminal_relay::resume() {
  impl_->paused = false;
  impl_->enter();
}

void terminal_relay::abandon() {
  impl_->drained.cancel();
}

asio::awaitable<void> terminal_relay::finish() {
  impl_->drained.expires_at(asio::steady_timer::time_point::max());
  asio_error ignored;
  if (impl_->master.is_open() && !impl_->output_done) {
    co_await impl_->drained.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  impl_->stopped = true;
  impl_->leave();
}

}  // namespace ccbox
