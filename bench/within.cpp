// What bench_broker runs inside an enclosure: it does one piece of work and prints how long it took, in
// nanoseconds, so that starting the enclosure is not in it.
//
//   within calls KIND COUNT                    COUNT system calls of a kind
//   within run PREPARATION TIMES COMMAND...    COMMAND, TIMES times, after a shell has done PREPARATION
//
// It works in the directory that it is in itself, with an environment of its own: the same in every
// enclosure.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

using clock_type = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what) {
  std::perror(("within: " + what).c_str());
  std::exit(1);
}

void need(bool done, const char* what) {
  if (!done) fail(what);
}

void set_environment() {
  ::clearenv();
  constexpr const char* fixed[][2] = {{"PATH", "/usr/local/bin:/usr/bin:/bin"},
                                      {"HOME", "/tmp/home"},
                                      {"LC_ALL", "C"},
                                      {"GIT_TEMPLATE_DIR", ""},
                                      {"GIT_CONFIG_NOSYSTEM", "1"}};
  for (const auto& [name, value] : fixed)
    ::setenv(name, value, 1);
  ::mkdir("/tmp/home", 0700);
}

// Standard output is for the result.
void run(char* const* argv) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(nothing, STDOUT_FILENO);
    ::execvp(argv[0], argv);
    ::_exit(127);
  }
  int status = 0;
  need(pid > 0 && ::waitpid(pid, &status, 0) == pid, "start a command");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    std::fprintf(stderr, "within: '%s' failed\n", argv[0]);
    std::exit(1);
  }
}

std::string numbered(long i) {
  return "calls/file" + std::to_string(i);
}

void touch(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  need(fd >= 0, "create a file");
  ::close(fd);
}

// Nanoseconds of `count` calls of `work`, with the number of each.
template <class Work>
long long timed(long count, const Work& work) {
  const auto start = clock_type::now();
  for (long i = 0; i < count; ++i)
    work(i);
  return std::chrono::nanoseconds(clock_type::now() - start).count();
}

void open_and_close(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  need(fd >= 0, "open");
  ::close(fd);
}

long long time_calls(const std::string& kind, long count) {
  ::mkdir("calls", 0755);
  touch("calls/there");
  if (kind == "read-open") return timed(count, [](long) { open_and_close("calls/there", O_RDONLY); });
  if (kind == "write-open") return timed(count, [](long) { open_and_close("calls/there", O_WRONLY); });
  if (kind == "stat")
    return timed(count, [](long) {
      struct stat status;
      need(::stat("calls/there", &status) == 0, "stat");
    });
  // Handed over, and let go at once: the way there and back alone.
  if (kind == "umask") return timed(count, [](long) { ::umask(022); });
  if (kind == "rename")
    return timed(count, [](long i) {
      const bool odd = i % 2 != 0;
      need(::rename(odd ? "calls/there2" : "calls/there", odd ? "calls/there" : "calls/there2") == 0,
           "rename");
    });
  const auto remove = [](long i) { need(::unlink(numbered(i).c_str()) == 0, "unlink"); };
  const auto remove_directory = [](long i) { need(::rmdir(numbered(i).c_str()) == 0, "rmdir"); };
  long long took = 0;
  if (kind == "create") {
    took = timed(count, [](long i) { open_and_close(numbered(i), O_WRONLY | O_CREAT | O_EXCL); });
    timed(count, remove);
  } else if (kind == "unlink") {
    timed(count, [](long i) { touch(numbered(i)); });
    took = timed(count, remove);
  } else if (kind == "mkdir") {
    took = timed(count, [](long i) { need(::mkdir(numbered(i).c_str(), 0755) == 0, "mkdir"); });
    timed(count, remove_directory);
  } else {
    std::fprintf(stderr, "within: unknown call '%s'\n", kind.c_str());
    std::exit(2);
  }
  return took;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  set_environment();
  const std::string self = argc > 0 ? argv[0] : "";
  need(::chdir(self.substr(0, self.rfind('/')).c_str()) == 0, "enter its directory");
  long long took = 0;
  if (what == "calls" && argc == 4) {
    took = time_calls(argv[2], std::atol(argv[3]));
  } else if (what == "run" && argc >= 5) {
    char shell[] = "/bin/sh", option[] = "-ec";
    char* preparation[] = {shell, option, argv[2], nullptr};
    run(preparation);
    took = timed(std::atol(argv[3]), [&](long) { run(argv + 4); });
  } else {
    std::fprintf(stderr, "usage: within calls KIND COUNT | within run PREPARATION TIMES COMMAND...\n");
    return 2;
  }
  std::printf("%lld\n", took);
}
