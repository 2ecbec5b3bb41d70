#include "process.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "support/os_faults.hpp"
#include "support/pipe.hpp"
#include "support/result_printing.hpp"
#include "support/temporary_directory.hpp"

using namespace ccbox;
using test::make_pipe;
using test::pipe_ends;
using test::read_all;

namespace {

// Runs `script` with its standard output in a pipe.
std::string output_of(const std::string& script, spawn_request request = {}) {
  pipe_ends p = make_pipe();
  request.argv = {"/bin/sh", "-c", script};
  request.env.emplace_back("PATH", "/usr/bin:/bin");
  request.descriptors.emplace_back(p.writer.get(), 1);
  auto c = spawn(request);
  REQUIRE_MESSAGE(c, c.error().what);
  p.writer.reset();
  std::string text = read_all(p.reader.get());
  CHECK(c->wait()->code() == 0);
  return text;
}

bool ends_within(int pidfd, int limit_ms) {
  pollfd p{pidfd, POLLIN, 0};
  return ::poll(&p, 1, limit_ms) == 1;
}

}  // namespace

TEST_CASE("a child reports its exit code, and a signal as 128 plus its number") {
  auto seven = spawn({.argv = {"/bin/sh", "-c", "exit 7"}});
  REQUIRE(seven);
  CHECK(seven->wait()->code() == 7);
  CHECK(seven->wait()->code() == 7);
  auto killed = spawn({.argv = {"/bin/sleep", "100"}});
  REQUIRE(killed);
  CHECK_FALSE(killed->try_wait());
  REQUIRE(killed->signal(SIGTERM));
  auto status = killed->wait();
  CHECK(status->signalled);
  CHECK(status->code() == 128 + SIGTERM);
  CHECK(killed->signal(SIGTERM).error().code == error_code::not_found);
}

TEST_CASE("a child inherits the listed descriptors and /dev/null, and nothing else") {
  unique_fd leak(::open("/dev/zero", O_RDONLY));  // not even O_CLOEXEC
  unique_fd high(::fcntl(leak.get(), F_DUPFD, 900));
  REQUIRE(high);
  unique_fd listed(::open("/dev/full", O_RDONLY | O_CLOEXEC));
  spawn_request request;
  request.descriptors = {{listed.get(), 7}};
  // sh itself opens nothing; ls opens the directory as the next free number.
  CHECK(output_of("exec ls /proc/self/fd", request) == "0\n1\n2\n3\n7\n");
  CHECK(output_of("exec readlink /proc/self/fd/0 /proc/self/fd/2 /proc/self/fd/7", request) ==
        "/dev/null\n/dev/null\n/dev/full\n");
}

TEST_CASE("descriptors are placed exactly even if their numbers overlap and swap") {
  pipe_ends a = make_pipe(), b = make_pipe();
  const int x = a.writer.get(), y = b.writer.get();
  // bash, for numbers of two digits.
  auto c = spawn({.argv = {"/bin/bash", "-c",
                           "echo first >&" + std::to_string(y) + "; echo second >&" + std::to_string(x)},
                  .descriptors = {{x, y}, {y, x}}});
  REQUIRE(c);
  a.writer.reset();
  b.writer.reset();
  CHECK(read_all(a.reader.get()) == "first\n");
  CHECK(read_all(b.reader.get()) == "second\n");
  CHECK(c->wait()->code() == 0);
}

TEST_CASE("one descriptor can be given under several numbers, its own among them") {
  pipe_ends p = make_pipe();
  const int own = p.writer.get();
  auto c = spawn({.argv = {"/bin/bash", "-c", "echo a >&1; echo b >&2; echo c >&" + std::to_string(own)},
                  .descriptors = {{own, 1}, {own, 2}, {own, own}}});
  REQUIRE(c);
  p.writer.reset();
  CHECK(read_all(p.reader.get()) == "a\nb\nc\n");
}

TEST_CASE("a hundred descriptors keep their order") {
  std::vector<pipe_ends> pipes;
  spawn_request request;
  std::string script;
  for (int i = 0; i < 100; ++i) {
    pipes.push_back(make_pipe());
    request.descriptors.emplace_back(pipes.back().writer.get(), 5 + 99 - i);
  }
  request.argv = {"/bin/bash", "-c", "for i in $(seq 0 99); do echo $i >&$((104 - i)); done"};
  request.env = {{"PATH", "/usr/bin:/bin"}};
  auto c = spawn(request);
  REQUIRE(c);
  for (int i = 0; i < 100; ++i) {
    pipes[static_cast<std::size_t>(i)].writer.reset();
    CHECK(read_all(pipes[static_cast<std::size_t>(i)].reader.get()) == std::to_string(i) + "\n");
  }
}

TEST_CASE("a child starts with no signal blocked or ignored, whatever its parent does") {
  struct sigaction before_pipe {
  }, ignore{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &before_pipe);
  sigset_t term, before;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &term, &before);
  const std::string text = output_of("grep -E 'Sig(Blk|Ign)' /proc/self/status");
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, &before, &now);
  ::sigaction(SIGPIPE, &before_pipe, nullptr);
  CHECK(text == "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
  CHECK(sigismember(&now, SIGTERM) == 1);  // ours is as it was
}

TEST_CASE("a child leads its own session unless told otherwise") {
  CHECK(output_of("set -- $(cat /proc/$$/stat); test $6 = $$ && echo leader") == "leader\n");
  spawn_request request;
  request.new_session = false;
  CHECK(output_of("set -- $(cat /proc/$$/stat); echo $6", request) == std::to_string(::getsid(0)) + "\n");
}

TEST_CASE("a child has exactly the given environment, in the given order") {
  pipe_ends p = make_pipe();
  auto c = spawn({.argv = {"/usr/bin/env"},
                  .env = {{"B", "with space"}, {"A", ""}},
                  .descriptors = {{p.writer.get(), 1}}});
  REQUIRE(c);
  p.writer.reset();
  CHECK(read_all(p.reader.get()) == "B=with space\nA=\n");
}

TEST_CASE("resource limits are set before exec, and never above what is allowed") {
  spawn_request request;
  request.rlimits = {{RLIMIT_FSIZE, 4096 * 512}, {RLIMIT_NOFILE, 1ull << 40}};
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  CHECK(output_of("ulimit -f; ulimit -Hn", request) == "4096\n" + std::to_string(files.rlim_max) + "\n");
}

TEST_CASE("a failure to start names the step, the object and the error") {
  CHECK(spawn({.argv = {"/nonexistent/program"}}).error().what ==
        "exec '/nonexistent/program': No such file or directory (ENOENT)");
  CHECK(spawn({.argv = {"/nonexistent/program"}}).error().code == error_code::not_found);
  CHECK(spawn({.argv = {"/etc/passwd"}}).error().code == error_code::permission_denied);
  CHECK(spawn({.argv = {"/bin/true", std::string(200 << 10, 'x')}}).error().code == error_code::too_large);
  CHECK(spawn({.argv = {"/bin/true"}, .cgroup_directories = {"/nonexistent"}}).error().what ==
        "open '/nonexistent/cgroup.procs': No such file or directory (ENOENT)");
}

TEST_CASE("a malformed request is refused before anything is started") {
  CHECK(spawn({}).error().code == error_code::invalid_argument);
  CHECK(spawn({.argv = {"true"}}).error().code == error_code::invalid_argument);
  CHECK(spawn({.argv = {"/bin/true", std::string("a\0b", 3)}}).error().code == error_code::invalid_argument);
  CHECK(spawn({.argv = {"/bin/true"}, .env = {{"A=B", "c"}}}).error().code == error_code::invalid_argument);
  CHECK(spawn({.argv = {"/bin/true"}, .env = {{"", "c"}}}).error().code == error_code::invalid_argument);
  CHECK(spawn({.argv = {"/bin/true"}, .descriptors = {{1, 5}, {2, 5}}}).error().code ==
        error_code::invalid_argument);
  CHECK(spawn({.argv = {"/bin/true"}, .descriptors = {{-1, 5}}}).error().code ==
        error_code::invalid_argument);
}

TEST_CASE("a descriptor that is not open is an error, not a hole") {
  const auto c = spawn({.argv = {"/bin/true"}, .descriptors = {{1000, 5}}});
  REQUIRE_FALSE(c);
  CHECK(c.error().what == "place descriptors for '/bin/true': Bad file descriptor (EBADF)");
}

TEST_CASE("destroying a child kills and reaps it") {
  const auto before = test::take_footprint();
  int watcher = -1;
  {
    auto c = spawn({.argv = {"/bin/sleep", "100"}});
    REQUIRE(c);
    watcher = ::fcntl(c->pidfd(), F_DUPFD_CLOEXEC, 0);
  }
  CHECK(ends_within(watcher, 0));
  ::close(watcher);
  CHECK(test::take_footprint() == before);
}

TEST_CASE("assigning over a child kills and reaps the old one only") {
  auto first = spawn({.argv = {"/bin/sleep", "100"}});
  auto second = spawn({.argv = {"/bin/sleep", "100"}});
  REQUIRE(first);
  REQUIRE(second);
  unique_fd watcher(::fcntl(first->pidfd(), F_DUPFD_CLOEXEC, 0));
  *first = std::move(*second);
  CHECK(ends_within(watcher.get(), 0));
  CHECK_FALSE(first->try_wait());
}

TEST_CASE("a child whose parent is killed is killed too, unless it outlives its parent") {
  for (const bool outlives : {false, true}) {
    CAPTURE(outlives);
    pipe_ends p = make_pipe();
    const pid_t owner = ::fork();
    if (owner == 0) {
      auto c = spawn(
          {.argv = {"/bin/sleep", "100"}, .descriptors = {{p.writer.get(), 1}}, .outlives_parent = outlives});
      const pid_t pid = c ? c->pid() : -1;
      [[maybe_unused]] auto n = ::write(p.writer.get(), &pid, sizeof pid);
      ::pause();
      ::_exit(0);
    }
    p.writer.reset();
    pid_t grandchild = -1;
    REQUIRE(::read(p.reader.get(), &grandchild, sizeof grandchild) == sizeof grandchild);
    REQUIRE(grandchild > 0);
    ::kill(owner, SIGKILL);
    ::waitpid(owner, nullptr, 0);
    // The pipe ends when the last holder, the grandchild, is gone.
    CHECK(ends_within(p.reader.get(), outlives ? 100 : 5000) == !outlives);
    if (outlives) ::kill(grandchild, SIGKILL);
  }
}

TEST_CASE("spawning from many threads at once works and leaks nothing") {
  const auto before = test::take_footprint();
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) {
        auto c = spawn({.argv = {"/bin/sh", "-c", "exit 3"}});
        if (c && c->wait()->code() == 3) ++good;
      }
    });
  }
  for (auto& t : threads)
    t.join();
  CHECK(good == 200);
  CHECK(test::take_footprint() == before);
}

TEST_CASE("whichever call fails, spawn returns an error and leaks neither descriptor nor child") {
  const bool root = ::geteuid() == 0;
  pipe_ends p = make_pipe();
  spawn_request request;
  request.argv = {"/bin/true"};
  request.descriptors = {{p.writer.get(), 5}};
  request.rlimits = {{RLIMIT_FSIZE, 1 << 20}};
  for (const bool userns : {false, true}) {
    if (userns && !root) continue;  // only root may map every id
    request.identity_userns = userns;
    int calls = 0;
    {
      test::failing_call count(0);
      REQUIRE(spawn(request));
      calls = count.calls();
    }
    REQUIRE(calls > 70);
    const auto before = test::take_footprint();
    for (int n = 1; n <= calls; ++n) {
      CAPTURE(n);
      test::failing_call fail(n);
      auto c = spawn(request);
      CHECK_FALSE(c);
      CHECK(fail.reached());
      CHECK(test::take_footprint() == before);
    }
  }
}

TEST_CASE("an identity user namespace keeps every id and makes a root caller's capabilities local") {
  spawn_request request;
  request.identity_userns = true;
  if (::geteuid() != 0) {
    request.argv = {"/bin/true"};
    CHECK_FALSE(spawn(request));
    return;
  }
  CHECK(output_of("cat /proc/self/uid_map; id -u; id -g", request) ==
        "         0          0 4294967295\n0\n0\n");
  CHECK(output_of("cat /proc/self/gid_map", request) == "         0          0 4294967295\n");
  char own[64] = {};
  REQUIRE(::readlink("/proc/self/ns/user", own, sizeof own - 1) > 0);
  CHECK(output_of("readlink /proc/self/ns/user", request) != std::string(own) + "\n");
}

TEST_CASE("in an identity user namespace the devices of the host can be used and not changed") {
  const bool root = ::geteuid() == 0;
  spawn_request request;
  // To the owner that it has already: nothing is lost if it is not refused.
  const std::string script =
      "chown 0 /dev/full 2>/dev/null && echo changed; echo x >/dev/null && echo written";
  CHECK(output_of(script, request) == (root ? "changed\nwritten\n" : "written\n"));
  request.identity_userns = root;
  CHECK(output_of(script, request) == "written\n");
}

TEST_CASE("mounts that the host makes later do not come into an identity user namespace") {
  spawn_request plain, request;
  request.identity_userns = true;
  if (::geteuid() != 0) {
    request.argv = {"/bin/true"};
    CHECK_FALSE(spawn(request));
    return;
  }
  std::string outside, inside;
  // A thread can have mounts of its own, here shared ones, as systemd has them.
  std::thread([&] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_SHARED, nullptr) != 0)
      return;
    outside = output_of("cat /proc/self/mountinfo", plain);
    inside = output_of("cat /proc/self/mountinfo", request);
  }).join();
  CHECK(outside.find(" shared:") != std::string::npos);
  CHECK(inside.find(" / / ") != std::string::npos);
  CHECK(inside.find(" shared:") == std::string::npos);
  CHECK(inside.find(" master:") == std::string::npos);
}

TEST_CASE("spawning does not make the caller undumpable") {
  REQUIRE(::prctl(PR_GET_DUMPABLE) == 1);
  spawn_request request;
  request.argv = {"/bin/true"};
  request.identity_userns = ::geteuid() == 0;
  REQUIRE(spawn(request));
  CHECK(::prctl(PR_GET_DUMPABLE) == 1);
}

TEST_CASE("a sealed file holds the bytes, from the start, and nobody can change it") {
  const std::string bytes("a\0b", 3);
  auto fd = sealed_file("test", bytes);
  REQUIRE(fd);
  CHECK(read_all(fd->get()) == bytes);
  CHECK(::pwrite(fd->get(), "x", 1, 0) == -1);
  CHECK(::ftruncate(fd->get(), 0) == -1);
  CHECK(::ftruncate(fd->get(), 10) == -1);
  CHECK(::fcntl(fd->get(), F_GETFD) == FD_CLOEXEC);
  const std::string large(3 << 20, 'x');
  auto big = sealed_file("large", large);
  REQUIRE(big);
  CHECK(read_all(big->get()) == large);
}

TEST_CASE("a sealed copy holds what the file holds, as much as is wanted, and nobody can change it") {
  const test::temporary_directory directory;
  const std::string large(3 << 20, 'x');
  unique_fd source(::open(directory.write("file", large + "end").c_str(), O_RDONLY | O_CLOEXEC));
  auto whole = sealed_copy("test", source.get(), 4 << 20);
  REQUIRE(whole);
  CHECK(read_all(whole->get()) == large + "end");
  CHECK(::pwrite(whole->get(), "y", 1, 0) == -1);
  CHECK(::ftruncate(whole->get(), 0) == -1);
  CHECK(::fcntl(whole->get(), F_GETFD) == FD_CLOEXEC);
  REQUIRE(::lseek(source.get(), 0, SEEK_SET) == 0);
  auto part = sealed_copy("test", source.get(), 10);
  REQUIRE(part);
  CHECK(read_all(part->get()) == std::string(10, 'x'));
}

TEST_CASE("a sealed copy of a program runs, and cannot be written while it does") {
  unique_fd source(::open("/usr/bin/false", O_RDONLY | O_CLOEXEC));
  auto copy = sealed_copy("test", source.get(), 16 << 20, memory_use::program);
  REQUIRE(copy);
  CHECK(::pwrite(copy->get(), "x", 1, 0) == -1);
  spawn_request request;
  request.argv = {"/proc/self/fd/3"};
  request.descriptors = {{copy->get(), 3}};
  auto started = spawn(request);
  REQUIRE(started);
  CHECK(started->wait()->code() == 1);
}

TEST_CASE("whichever call fails, a sealed copy is an error and leaks nothing") {
  const unique_fd source(::open("/usr/bin/true", O_RDONLY | O_CLOEXEC));
  const auto before = test::take_footprint();
  for (int n = 1; n <= 6; ++n) {
    CAPTURE(n);
    REQUIRE(::lseek(source.get(), 0, SEEK_SET) == 0);
    test::failing_call fail(n);
    CHECK_FALSE(sealed_copy("test", source.get(), 16 << 20, memory_use::program));
    CHECK(test::take_footprint() == before);
  }
}

TEST_CASE("whichever call fails, a sealed file is an error and leaks nothing") {
  const auto before = test::take_footprint();
  for (int n = 1; n <= 4; ++n) {
    CAPTURE(n);
    test::failing_call fail(n);
    CHECK_FALSE(sealed_file("test", "bytes"));
    CHECK(test::take_footprint() == before);
  }
}
