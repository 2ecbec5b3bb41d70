// ccbox-broker --orders F --init I [--reports R] -- PROGRAM ARGUMENTS...
//
// Starts PROGRAM (bwrap) with one end of a socket in place of its descriptor I, on which ccbox-init hands
// over its system-call listener (ccbox/floor.hpp), answers that listener, and ends as PROGRAM ends. F:
// broker_orders.hpp, a sealed file. R: denial_report.hpp.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "broker/enclosure_entry.hpp"
#include "broker/self_filter.hpp"
#include "broker/worker.hpp"

using namespace ccbox::bubblewrap;

namespace {

[[noreturn]] void fail(const std::string& what, int error_number = 0) {
  const auto cause = error_number == 0 ? std::string() : std::string(": ") + ::strerrordesc_np(error_number);
  const auto line = "ccbox-broker: " + what + cause + "\n";
  (void)!::write(STDERR_FILENO, line.data(), line.size());
  ::_exit(1);
}

struct command_line {
  int orders = -1, init = -1, reports = -1;
  char** program = nullptr;
};

command_line parse(int argc, char** argv) {
  command_line given;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string word = argv[i];
    if (word == "--") {
      given.program = argv + i + 1;
      break;
    }
    int* const into = word == "--orders"    ? &given.orders
                      : word == "--init"    ? &given.init
                      : word == "--reports" ? &given.reports
                                            : nullptr;
    if (!into) break;
    *into = std::atoi(argv[i + 1]);
  }
  if (!given.program || given.orders < 3 || given.init < 3)
    fail("usage: ccbox-broker --orders F --init I [--reports R] -- PROGRAM ARGUMENTS...");
  return given;
}

broker_orders read_orders(int number) {
  struct stat status;
  if (::fstat(number, &status) != 0) fail("the orders", errno);
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  if (::pread(number, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    fail("read the orders", errno);
  auto orders = decode_broker_orders(bytes);
  if (!orders) fail("the orders make no sense");
  return *std::move(orders);
}

// Shares our memory until it has executed; nothing is copied.
pid_t start(char** program, int init_end, int number) {
  const pid_t pid = ::vfork();
  if (pid == 0) {
    if (::dup2(init_end, number) == number) ::execv(program[0], program);
    ::_exit(127);
  }
  if (pid < 0) fail("start the launcher", errno);
  return pid;
}

[[noreturn]] void end_as(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ::_exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

// What was inherited for the launcher alone: mounts and files of the host, the channel to init.
void close_all_but(std::array<int, 3> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned first = STDERR_FILENO + 1;
  for (const int number : kept) {
    if (number < 0) continue;
    const auto stays = static_cast<unsigned>(number);
    if (stays > first) ::syscall(SYS_close_range, first, stays - 1, 0U);
    first = stays + 1;
  }
  ::syscall(SYS_close_range, first, ~0U, 0U);
}

void run_thread(void* (*body)(void*), void* with) {
  pthread_attr_t attributes;
  constexpr std::size_t stack_bytes = 128 << 10;
  pthread_t thread;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, stack_bytes);
  if (const int failure = ::pthread_create(&thread, &attributes, body, with)) fail("start a thread", failure);
  ::pthread_attr_destroy(&attributes);
}

}  // namespace

int main(int argc, char** argv) {
  auto given = parse(argc, argv);
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail("socketpair", errno);
  descriptor ours(ends[0]), theirs(ends[1]);
  for (const int own : {given.orders, given.reports})
    if (own >= 0) ::fcntl(own, F_SETFD, FD_CLOEXEC);
  pid_t child = start(given.program, theirs.get(), given.init);
  theirs.close();
  close_all_but({given.orders, given.reports, ours.get()});

  const auto orders = read_orders(given.orders);
  std::string problem;
  const auto rules = name_rules::make(orders, problem);
  if (!rules) fail(problem);
  host_proc proc;
  if (!proc.valid()) fail("open '/proc'", errno);
  const path_resolver paths(orders.open);
  denial_report reports(descriptor(given.reports), orders.mounts);
  desk with(*rules, paths, reports);

  auto from_init = receive_listener(ours.get());
  if (!from_init.mount_namespace) end_as(child);  // it says on standard error what went wrong
  if (const char* step = enter_namespaces(from_init.mount_namespace.get())) fail(step, errno);
  from_init.mount_namespace.close();
  if (!proc.learn_mounts()) fail("read the enclosure's mounts", errno);
  if (const char* step = confine()) fail(step, errno);

  const listener calls(std::move(from_init.listener));
  worker at_work(calls, proc, with);
  run_thread([](void* pid) -> void* { end_as(*static_cast<pid_t*>(pid)); }, &child);
  run_thread([](void* w) -> void* { static_cast<worker*>(w)->wait_for_readers(); }, &at_work);
  // The mask of new files is this thread's own from here on.
  if (::unshare(CLONE_FS) != 0) fail("unshare", errno);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  if (!restrict_own_calls()) fail("install its own filter", errno);
#endif
  if (::send(ours.get(), "", 1, MSG_NOSIGNAL) != 1) end_as(child);
  ours.close();
  at_work.run();
}
