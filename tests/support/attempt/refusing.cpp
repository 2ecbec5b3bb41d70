#include "refusing.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <future>
#include <string_view>
#include <thread>
#include <vector>

namespace attempt {

namespace {

constexpr int wrong_usage = 200;

struct refusal {
  std::uint32_t call = 0, mask = 0, value = 0;
  unsigned argument = 0;
  bool is_conditional = false;
  std::uint32_t answer = 0;
};

// Reads a number and what must come after it.
bool take(const char*& text, std::uint32_t& number, char next) {
  char* end = nullptr;
  number = static_cast<std::uint32_t>(std::strtoul(text, &end, 0));
  const bool good = end != text && *end == next;
  text = end + 1;
  return good;
}

bool parse(const char* text, refusal& into) {
  into.is_conditional = std::strchr(text, '/') != nullptr;
  if (!take(text, into.call, into.is_conditional ? '/' : ':')) return false;
  if (into.is_conditional &&
      !(take(text, into.argument, '&') && take(text, into.mask, '=') && take(text, into.value, ':')))
    return false;
  std::uint32_t error = 0;
  if (!take(text, error, '\0')) return false;
  into.answer = SECCOMP_RET_ERRNO | error;
  return true;
}

void add(std::vector<sock_filter>& code, const refusal& of) {
  const auto distance = static_cast<std::uint8_t>(of.is_conditional ? 4 : 1);
  code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, of.call, 0, distance));
  if (of.is_conditional) {
    code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                            static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * of.argument)));
    code.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, of.mask));
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, of.value, 0, 1));
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, of.answer));
}

long install(std::vector<sock_filter>& code, unsigned flags) {
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

char** command_of(int argc, char** argv) {
  for (int i = 0; i + 1 < argc; ++i)
    if (std::string_view(argv[i]) == "--") return argv + i + 1;
  return nullptr;
}

void answer_all(int listener, long value) {
  for (;;) {
    seccomp_notif call{};
    if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) continue;
    seccomp_notif_resp response{call.id, value, 0, 0};
    ::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
  }
}

}  // namespace

int run_refusing(int argc, char** argv) {
  char** const command = command_of(argc, argv);
  if (!command) return wrong_usage;
  std::vector<sock_filter> code;
  for (char** word = argv; word + 1 < command; ++word) {
    refusal of;
    if (!parse(*word, of)) return wrong_usage;
    add(code, of);
  }
  if (install(code, 0) != 0) return errno;
  ::execv(command[0], command);
  return errno;
}

int run_answering(int argc, char** argv) {
  char** const command = command_of(argc, argv);
  if (!command || argc < 3) return wrong_usage;
  refusal of;
  of.call = static_cast<std::uint32_t>(std::strtol(argv[0], nullptr, 0));
  of.answer = SECCOMP_RET_USER_NOTIF;
  std::vector<sock_filter> code;
  add(code, of);
  // Another thread, which the filter is not on, answers.
  std::promise<int> made;
  std::thread([listener = made.get_future(), value = std::strtol(argv[1], nullptr, 0)]() mutable {
    answer_all(listener.get(), value);
  }).detach();
  const long listener = install(code, SECCOMP_FILTER_FLAG_NEW_LISTENER);
  if (listener < 0) ::_exit(errno);  // the other thread waits
  made.set_value(static_cast<int>(listener));
  const pid_t child = ::fork();
  if (child == 0) {
    ::execv(command[0], command);
    ::_exit(wrong_usage);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return wrong_usage;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace attempt
