#include "race.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <thread>

#include "script.hpp"
#include "table.hpp"

namespace attempt {
namespace {

constexpr char forbidden[] = ".env", hook[] = ".git/hooks/pre-commit";

struct tally {
  unsigned long escapes = 0, done = 0, refused = 0, other = 0;

  void count(long result) {
    if (result >= 0)
      ++done;
    else if (errno == EACCES)
      ++refused;
    else if (!explained.contains(errno))
      ++other;
  }
  std::set<int> explained;
};

bool there(const char* path) {
  struct stat status;
  return ::lstat(path, &status) == 0;
}

// Somebody else's hand; goes on until it is destroyed.
class flipper {
 public:
  explicit flipper(std::function<void()> once)
      : thread_([this, once] {
          while (!stop_.load(std::memory_order_relaxed))
            once();
        }) {}
  ~flipper() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

// The same numbers each time.
bool coin() {
  static thread_local unsigned state = 2463534242;
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return (state >> 7) & 1;
}

// A call that the broker answers and that changes nothing. Two sides that both go through the broker take
// turns: without it they could meet in the same order for ever.
void lose_step() {
  if (coin()) ::rmdir("nothing");
}

void make_file(const char* path, const char* text = "") {
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  (void)!::write(fd, text, std::strlen(text));
  ::close(fd);
}

// Counts and takes away what should not be.
void look_for(const char* path, tally& all) {
  if (!there(path)) return;
  ++all.escapes;
  if (::unlink(path) != 0) ::rmdir(path);
}

void close_if(long fd) {
  if (fd >= 0) ::close(static_cast<int>(fd));
}

// The path changes between two names while it is read.
void flip_path(unsigned long n, tally& all, const std::function<long(const char*)>& call) {
  static volatile char path[] = "xenv";
  const flipper flips([] { path[0] = path[0] == 'x' ? '.' : 'x'; });
  for (unsigned long i = 0; i < n; ++i) {
    const long result = call(const_cast<const char*>(path));
    all.count(result);
    close_if(result > 2 ? result : -1);
    look_for(forbidden, all);
    ::unlink("xenv");
  }
}

void buffer_open(unsigned long n, tally& all) {
  flip_path(n, all, [](const char* path) { return ::open(path, O_WRONLY | O_CREAT, 0644); });
}
void buffer_mkdir(unsigned long n, tally& all) {
  flip_path(n, all, [](const char* path) {
    const int result = ::mkdir(path, 0755);
    const int error = errno;
    ::rmdir("xenv");
    if (there(forbidden)) return 0;
    errno = error;
    return result;
  });
}
void buffer_rename(unsigned long n, tally& all) {
  flip_path(n, all, [](const char* path) {
    make_file("source");
    return ::rename("source", path);
  });
}
void buffer_link(unsigned long n, tally& all) {
  make_file("source");
  flip_path(n, all, [](const char* path) { return ::link("source", path); });
}

// A link leads now to one name, now to another.
void symlink_swap(unsigned long n, tally& all) {
  ::symlink(forbidden, "to-env");
  ::symlink("xenv", "to-ok");
  ::symlink("xenv", "link");
  ::symlink(forbidden, "spare");
  const flipper swaps([] {
    ::syscall(SYS_renameat2, AT_FDCWD, "link", AT_FDCWD, "spare", RENAME_EXCHANGE);
    lose_step();
  });
  for (unsigned long i = 0; i < n; ++i) {
    const long result = ::open("link", O_WRONLY | O_CREAT, 0644);
    all.count(result);
    close_if(result);
    look_for(forbidden, all);
    ::unlink("xenv");
  }
}

// A directory is now the hooks' one, now another.
void directory_swap(unsigned long n, tally& all) {
  ::mkdir("real", 0755);
  ::mkdir("other", 0755);
  ::mkdir(".git", 0755);
  ::mkdir(".git/hooks", 0755);
  ::symlink(".git/hooks", "d");
  ::symlink("other", "e");
  const flipper swaps([] {
    ::syscall(SYS_renameat2, AT_FDCWD, "d", AT_FDCWD, "e", RENAME_EXCHANGE);
    lose_step();
  });
  for (unsigned long i = 0; i < n; ++i) {
    const long result = ::open("d/pre-commit", O_WRONLY | O_CREAT, 0644);
    all.count(result);
    close_if(result);
    look_for(hook, all);
    ::unlink("other/pre-commit");
  }
}

// The directory that a file is made in becomes the hooks' one at the same time.
void parent_storm(unsigned long n, tally& all, const std::function<long()>& make) {
  all.explained = {ENOENT, EEXIST, ENOTEMPTY, EBUSY};
  ::mkdir("x", 0755);
  ::mkdir("x/hooks", 0755);
  const flipper storms([] {
    ::rename("x", ".git");
    lose_step();
    ::rename(".git", "x");
    lose_step();
  });
  for (unsigned long i = 0; i < n; ++i) {
    const long result = make();
    all.count(result);
    close_if(result > 2 ? result : -1);
    look_for(hook, all);
    ::unlink("x/hooks/pre-commit");
  }
}
void rename_storm(unsigned long n, tally& all) {
  parent_storm(n, all, [] { return ::open(coin() ? "x/hooks/pre-commit" : hook, O_WRONLY | O_CREAT, 0644); });
}
// With the directory held.
void held_storm(unsigned long n, tally& all) {
  ::mkdir("x", 0755);
  ::mkdir("x/hooks", 0755);
  const int held = ::open("x/hooks", O_PATH | O_DIRECTORY);
  parent_storm(n, all, [&] { return ::openat(held, "pre-commit", O_WRONLY | O_CREAT, 0644); });
}
void unnamed_storm(unsigned long n, tally& all) {
  ::mkdir("x", 0755);
  ::mkdir("x/hooks", 0755);
  const int held = ::open("x/hooks", O_PATH | O_DIRECTORY);
  parent_storm(n, all, [&] {
    const int file = ::open(".", O_TMPFILE | O_WRONLY, 0644);
    char path[32];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    const long result = ::linkat(AT_FDCWD, path, held, "pre-commit", AT_SYMLINK_FOLLOW);
    const int error = errno;
    ::close(file);
    errno = error;
    return result;
  });
}
void held_rename_storm(unsigned long n, tally& all) {
  ::mkdir("x", 0755);
  const int held = ::open("x", O_PATH | O_DIRECTORY);
  parent_storm(n, all, [&] {
    ::mkdir("tree", 0755);
    make_file("tree/pre-commit");
    // Over the empty one, and back.
    const long result = ::renameat(AT_FDCWD, "tree", held, "hooks");
    const int error = errno;
    if (there(hook)) return result;
    ::renameat(held, "hooks", AT_FDCWD, "tree");
    ::mkdirat(held, "hooks", 0755);
    errno = error;
    return result;
  });
}

// A file and a tree change places while one of them gets the forbidden name.
void type_swap(unsigned long n, tally& all) {
  all.explained = {ENOENT, ENOTDIR, EISDIR, ENOTEMPTY, EEXIST};
  ::mkdir("a", 0755);
  ::mkdir("a/hooks", 0755);
  make_file("a/hooks/pre-commit");
  make_file("b");
  const flipper swaps([] {
    ::syscall(SYS_renameat2, AT_FDCWD, "a", AT_FDCWD, "b", RENAME_EXCHANGE);
    lose_step();
  });
  for (unsigned long i = 0; i < n; ++i) {
    const int renamed = ::rename("a", ".git");
    all.count(renamed);
    if (there(hook)) ++all.escapes;
    if (renamed == 0) ::rename(".git", "a");
  }
}

// The number of a directory changes what it stands for. `call` is about the descriptor 200.
void flip_descriptor(unsigned long n, tally& all, int good, int bad, const char* escape, const char* harmless,
                     const std::function<long(int)>& call) {
  constexpr int number = 200;
  ::dup2(good, number);
  const flipper flips([=] {
    ::dup2(bad, number);
    ::dup2(good, number);
  });
  for (unsigned long i = 0; i < n; ++i) {
    const long result = call(number);
    all.count(result);
    close_if(result > 2 ? result : -1);
    if (escape) look_for(escape, all);
    if (harmless) ::unlink(harmless);
  }
}
void dup2_directory(unsigned long n, tally& all) {
  ::mkdir("other", 0755);
  ::mkdir(".git", 0755);
  ::mkdir(".git/hooks", 0755);
  const int good = ::open("other", O_PATH), bad = ::open(".git/hooks", O_PATH);
  flip_descriptor(n, all, good, bad, hook, "other/pre-commit",
                  [](int d) { return ::openat(d, "pre-commit", O_WRONLY | O_CREAT, 0644); });
}
// `.env` is there, with the text `old`: made by the host.
void dup2_reopen(unsigned long n, tally& all) {
  make_file("xenv");
  const int good = ::open("xenv", O_RDONLY), bad = ::open(forbidden, O_RDONLY);
  struct stat protected_file;
  ::fstat(bad, &protected_file);
  flip_descriptor(n, all, good, bad, nullptr, nullptr, [&](int d) {
    char path[32];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", d);
    const int opened = ::open(path, O_WRONLY);
    const int error = errno;
    struct stat status;
    if (opened >= 0 && ::fstat(opened, &status) == 0 && status.st_ino == protected_file.st_ino) ++all.escapes;
    errno = error;
    return opened;
  });
}
void dup2_link(unsigned long n, tally& all) {
  make_file("xenv");
  const int good = ::open("xenv", O_RDONLY), bad = ::open(forbidden, O_RDONLY);
  struct stat protected_file;
  ::fstat(bad, &protected_file);
  flip_descriptor(n, all, good, bad, nullptr, nullptr, [&](int d) {
    char path[32];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", d);
    const int linked = ::linkat(AT_FDCWD, path, AT_FDCWD, "second", AT_SYMLINK_FOLLOW);
    const int error = errno;
    struct stat status;
    if (linked == 0 && ::lstat("second", &status) == 0 && status.st_ino == protected_file.st_ino)
      ++all.escapes;
    ::unlink("second");
    errno = error;
    return linked;
  });
}

// The working directory of all threads changes.
void chdir_flip(unsigned long n, tally& all) {
  ::mkdir("other", 0755);
  ::mkdir(".git", 0755);
  ::mkdir(".git/hooks", 0755);
  const int top = ::open(".", O_PATH), good = ::open("other", O_PATH), bad = ::open(".git/hooks", O_PATH);
  {
    const flipper flips([=] {
      (void)!::fchdir(bad);
      (void)!::fchdir(good);
    });
    for (unsigned long i = 0; i < n; ++i) {
      const long result = ::open("pre-commit", O_WRONLY | O_CREAT, 0644);
      all.count(result);
      close_if(result);
      if (::faccessat(bad, "pre-commit", F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        ++all.escapes;
        ::unlinkat(bad, "pre-commit", 0);
      }
      ::unlinkat(good, "pre-commit", 0);
    }
  }
  (void)!::fchdir(top);
}

// A child that shares the memory makes the call while a thread of the parent's flips its path.
void vfork_child(unsigned long n, tally& all) {
  flip_path(n, all, [](const char* path) {
    const pid_t child = ::vfork();
    if (child == 0) {
      const int result = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT, 0644));
      ::_exit(result >= 0 ? 0 : errno);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    errno = WEXITSTATUS(status);
    return WIFEXITED(status) && errno == 0 ? 0 : -1;
  });
}

// A directory goes, and another one gets its number.
void inode_reuse(unsigned long n, tally& all) {
  ::mkdir(".git", 0755);
  for (unsigned long i = 0; i < n; ++i) {
    ::mkdir("x", 0755);
    const int ordinary = ::open("x/pre-commit", O_WRONLY | O_CREAT, 0644);
    all.count(ordinary);
    close_if(ordinary);
    ::unlink("x/pre-commit");
    ::rmdir("x");
    ::mkdir(".git/hooks", 0755);
    const int bad = ::open(hook, O_WRONLY | O_CREAT, 0644);
    all.count(bad);
    close_if(bad);
    look_for(hook, all);
    ::rmdir(".git/hooks");
  }
}

// Signals that do not end anything do not change how a call ends.
void signal_storm(unsigned long n, tally& all) {
  struct sigaction quiet {};
  quiet.sa_handler = [](int) {};
  quiet.sa_flags = SA_RESTART;
  ::sigaction(SIGALRM, &quiet, nullptr);
  const itimerval often{{0, 200}, {0, 200}};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  for (unsigned long i = 0; i < n; ++i) {
    const int made = ::open("xenv", O_WRONLY | O_CREAT | O_EXCL, 0644);
    all.count(made);
    close_if(made);
    all.count(::mkdir("xdir", 0755));
    all.count(::rename("xenv", "yenv"));
    all.count(::unlink("yenv"));
    all.count(::rmdir("xdir"));
    all.count(::open(forbidden, O_WRONLY | O_CREAT | O_EXCL, 0644));
    look_for(forbidden, all);
  }
  const itimerval never{};
  ::setitimer(ITIMER_REAL, &never, nullptr);
}

const std::map<std::string, void (*)(unsigned long, tally&)> races = {
    {"buffer-open", buffer_open},     {"buffer-mkdir", buffer_mkdir},
    {"buffer-rename", buffer_rename}, {"buffer-link", buffer_link},
    {"symlink-swap", symlink_swap},   {"directory-swap", directory_swap},
    {"rename-storm", rename_storm},   {"held-storm", held_storm},
    {"unnamed-storm", unnamed_storm}, {"held-rename-storm", held_rename_storm},
    {"type-swap", type_swap},         {"dup2-directory", dup2_directory},
    {"dup2-reopen", dup2_reopen},     {"dup2-link", dup2_link},
    {"chdir-flip", chdir_flip},       {"vfork-child", vfork_child},
    {"inode-reuse", inode_reuse},     {"signal-storm", signal_storm},
};

}  // namespace

int run_race(const std::string& name, unsigned long iterations) {
  const auto found = races.find(name);
  if (found == races.end()) return usage_error;
  if (!wait_until_prepared()) return usage_error;
  tally all;
  found->second(iterations, all);
  std::printf("escapes %lu done %lu refused %lu other %lu\n", all.escapes, all.done, all.refused, all.other);
  return 0;
}

}  // namespace attempt
