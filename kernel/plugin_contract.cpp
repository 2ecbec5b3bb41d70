#include "plugin_contract.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "contract_checks.hpp"
#include "contract_resources.hpp"
#include "exported_symbols.hpp"
#include "unique_fd.hpp"

namespace ccbox {
namespace {

using contract::check_entry;
using contract::subject;
using contract::verdict;

constexpr std::size_t max_plugin_bytes = std::size_t{256} << 20;

result<std::string> read_plugin(const std::string& path) {
  // Never blocks on a FIFO, never follows a link: the loader refuses both.
  unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file)
    return system_error("open", path, errno,
                        errno == ELOOP ? "a plugin is a regular file, not a symbolic link" : "");
  struct stat facts = {};
  if (::fstat(file.get(), &facts) != 0) return system_error("stat", path, errno);
  if (!S_ISREG(facts.st_mode))
    return error{
        error_code::invalid_argument, "plugin " + ccbox::quoted(path) + " is not a regular file", {}};
  if (static_cast<std::size_t>(facts.st_size) > max_plugin_bytes)
    return error{error_code::too_large, "plugin " + ccbox::quoted(path) + " is larger than 256 MiB", {}};
  std::string bytes(static_cast<std::size_t>(facts.st_size), '\0');
  std::size_t got = 0;
  while (got < bytes.size()) {
    const auto n = ::read(file.get(), bytes.data() + got, bytes.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("read", path, errno);
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  bytes.resize(got);
  return bytes;
}

// The copy that the checks load.
result<unique_fd> copy_of(const std::string& bytes) {
  unique_fd copy(::memfd_create("plugin", MFD_CLOEXEC));
  if (!copy) return system_error("memfd_create", "plugin", errno);
  for (std::size_t written = 0; written < bytes.size();) {
    const auto n = ::write(copy.get(), bytes.data() + written, bytes.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("write", "the copy of the plugin", errno);
    written += static_cast<std::size_t>(n);
  }
  return copy;
}

// What requests name: a work directory with a secret, git hooks and directories with hostile names. Removed
// at the end.
class fixture {
 public:
  static result<std::unique_ptr<fixture>> make() {
    const char* base = std::getenv("TMPDIR");
    std::string path = std::string(base && base[0] == '/' ? base : "/tmp") + "/ccbox-contract-XXXXXX";
    if (!::mkdtemp(path.data())) return system_error("mkdtemp", path, errno);
    std::unique_ptr<fixture> made(new fixture(path));
    std::error_code failed;
    std::filesystem::create_directories(path + "/tree/.git/hooks", failed);
    for (const auto& name : contract::hostile_directory_names()) {
      if (failed) break;
      std::filesystem::create_directory(path + "/tree/" + name, failed);
    }
    if (failed) return system_error("mkdir", path, failed.value());
    std::ofstream(path + "/tree/secret") << "secret\n";
    std::ofstream(path + "/ccbox-init") << "not started by the suite\n";
    return made;
  }
  ~fixture() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit fixture(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

struct unmap {
  void operator()(verdict* v) const { ::munmap(v, sizeof(verdict)); }
};

void settle(verdict& v, int state, const std::string& reason) {
  const auto length = std::min(reason.size(), sizeof v.reason - 1);
  std::memcpy(v.reason, reason.data(), length);
  v.reason[length] = '\0';
  v.state = state;
}

void load_and_check(const check_entry& check, subject s, int plugin_fd) {
  s.threads_before = contract::open_resources().threads;
  const std::string path = "/proc/self/fd/" + std::to_string(plugin_fd);
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  contract::expect(handle != nullptr, std::string("it cannot be loaded: ") + (handle ? "" : ::dlerror()));
  s.entry = reinterpret_cast<ccbox_plugin_entry>(::dlsym(handle, "ccbox_plugin_v1"));
  contract::expect(s.entry != nullptr, "ccbox_plugin_v1 is not a function");
  s.descriptor = s.entry();
  contract::expect(s.descriptor != nullptr, "ccbox_plugin_v1 returns NULL");
  contract::expect(
      CCBOX_HAS(s.descriptor, ccbox_plugin_descriptor, get_extension) && s.descriptor->size <= 65536,
      "the size of the descriptor, " + std::to_string(s.descriptor->size) + ", is not one of this ABI");
  check.run(s);
}

// The process of one check: nothing of it reaches the terminal, and it takes its descendants along.
[[noreturn]] void run_child(const check_entry& check, const subject& s, int plugin_fd, int output_fd,
                            pid_t parent, verdict& v) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // so that a daemon of the plugin is seen as a child
  // Handlers and masks of the suite's process are not the plugin's.
  for (int number = 1; number < NSIG; ++number)
    ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  unique_fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::dup2(null.get(), STDIN_FILENO);
  ::dup2(output_fd, STDOUT_FILENO);
  ::dup2(output_fd, STDERR_FILENO);
  contract::report_side_effects_to(&v);
  try {
    load_and_check(check, s, plugin_fd);
    settle(v, verdict::passed, {});
  } catch (const contract::create_refused& refused) {
    settle(v, verdict::create_refused, refused.reason);
  } catch (const contract::violation& broken) {
    settle(v, verdict::failed, broken.reason);
  } catch (const contract::not_applicable& skipped) {
    settle(v, verdict::not_applicable, skipped.reason);
  } catch (const std::exception& e) {
    settle(v, verdict::failed, std::string("the check itself failed: ") + e.what());
  }
  ::_exit(0);
}

// The last line that the check's process wrote: an assertion, a sanitizer's summary.
std::string last_output_line(int fd) {
  std::string tail(4096, '\0');
  const auto size = ::lseek(fd, 0, SEEK_END);
  const auto n =
      ::pread(fd, tail.data(), tail.size(), std::max<off_t>(0, size - static_cast<off_t>(tail.size())));
  tail.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  while (!tail.empty() && tail.back() == '\n')
    tail.pop_back();
  const auto line = tail.rfind('\n');
  return line == std::string::npos ? tail : tail.substr(line + 1);
}

std::string crash_reason(int status, const verdict& v, int output_fd) {
  if (v.forbidden_call > 0) {
    return "it made the system call " + contract::system_call_name(v.forbidden_call - 1) +
           ", and may neither start a process nor change a file here";
  }
  std::string reason;
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    const char* name = ::sigabbrev_np(number);
    reason = "it crashed with SIG" + (name ? std::string(name) : std::to_string(number));
    if (number == SIGSEGV || number == SIGBUS)
      reason +=
          " (what the host passes has no terminator, ends at an inaccessible page and is gone after the "
          "call)";
  } else {
    reason = "it ended the process with exit code " + std::to_string(WEXITSTATUS(status));
  }
  const auto line = last_output_line(output_fd);
  return line.empty() ? reason : reason + "; its last line was " + ccbox::quoted(line);
}

result<contract_check> run_check(const check_entry& check, const subject& s, int plugin_fd,
                                 std::chrono::milliseconds limit, bool* refused) {
  void* shared = ::mmap(nullptr, sizeof(verdict), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return system_error("mmap", "the verdict", errno);
  const std::unique_ptr<verdict, unmap> v(static_cast<verdict*>(shared));
  unique_fd output(::memfd_create("output", MFD_CLOEXEC));
  if (!output) return system_error("memfd_create", "output", errno);

  // What this process has not written yet is not the check's output.
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return system_error("fork", "", errno);
  if (pid == 0) run_child(check, s, plugin_fd, output.get(), parent, *v);

  unique_fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const auto deadline = std::chrono::steady_clock::now() + limit;
  bool ended = false;
  while (!ended) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    pollfd wait = {pidfd.get(), POLLIN, 0};
    ended = ::poll(&wait, 1, static_cast<int>(left.count())) > 0;
  }
  // The whole session of the check: what the plugin may have started too.
  ::kill(-pid, SIGKILL);
  ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }

  contract_check out{
      std::string(check.name), std::string(check.promise), contract_check::outcome::failed, {}};
  if (!ended) {
    out.reason = "it did not answer within " + std::to_string(limit.count()) + " ms";
  } else if (v->state == verdict::silent || v->forbidden_call > 0) {
    out.reason = crash_reason(status, *v, output.get());
  } else {
    if (v->state == verdict::passed) out.state = contract_check::outcome::passed;
    if (v->state == verdict::not_applicable) out.state = contract_check::outcome::not_applicable;
    out.reason = v->reason;
    if (v->state == verdict::create_refused) {
      out.reason += "; the checks that follow need an instance and were left out";
      *refused = true;
    }
  }
  return out;
}

constexpr std::string_view symbols_name = "exports_one_symbol";
constexpr std::string_view symbols_promise =
    "the file is a shared object that exports ccbox_plugin_v1 and nothing else";

contract_check check_symbols(const std::string& bytes, const std::string& path) {
  contract_check out{
      std::string(symbols_name), std::string(symbols_promise), contract_check::outcome::failed, {}};
  const auto symbols = exported_symbols(bytes, path);
  if (!symbols) {
    out.reason = symbols.error().what;
    return out;
  }
  const auto entry = std::find(symbols->begin(), symbols->end(), "ccbox_plugin_v1");
  if (entry == symbols->end()) {
    out.reason = "it does not export ccbox_plugin_v1";
  } else if (symbols->size() > 1) {
    const auto& other = *symbols->begin() == "ccbox_plugin_v1" ? symbols->back() : symbols->front();
    out.reason = "it exports " + std::to_string(symbols->size() - 1) + " more, " + ccbox::quoted(other) +
                 " among them; link with the export map of ccbox_add_plugin";
  } else {
    out.state = contract_check::outcome::passed;
  }
  return out;
}

std::vector<const std::vector<check_entry>*> all_checks() {
  return {&contract::lifecycle_checks(), &contract::probe_checks(), &contract::plan_checks(),
          &contract::monitor_checks()};
}

bool is_wanted(const std::vector<std::string>& only, std::string_view name) {
  return only.empty() || std::find(only.begin(), only.end(), name) != only.end();
}

}  // namespace

bool contract_report::passed() const {
  return !checks.empty() && std::none_of(checks.begin(), checks.end(), [](const contract_check& c) {
    return c.state == contract_check::outcome::failed;
  });
}

std::vector<std::pair<std::string, std::string>> contract_checks() {
  std::vector<std::pair<std::string, std::string>> out;
  out.emplace_back(symbols_name, symbols_promise);
  for (const auto* checks : all_checks())
    for (const auto& check : *checks)
      out.emplace_back(check.name, check.promise);
  return out;
}

result<contract_report> run_plugin_contract(const std::string& path, const contract_options& options,
                                            const contract_sink& sink) {
  const auto known = contract_checks();
  for (const auto& name : options.only) {
    if (std::none_of(known.begin(), known.end(), [&](const auto& check) { return check.first == name; }))
      return error{error_code::invalid_argument,
                   "no check of the contract suite is called " + ccbox::quoted(name),
                   {}};
  }
  auto bytes = read_plugin(path);
  if (!bytes) return bytes.error();
  contract_report report{path, {}};
  const auto add = [&](contract_check check) {
    report.checks.push_back(std::move(check));
    if (sink) sink(report.checks.back());
  };
  add(check_symbols(*bytes, path));
  if (!report.passed()) return report;

  auto copy = copy_of(*bytes);
  if (!copy) return copy.error();
  auto directory = fixture::make();
  if (!directory) return directory.error();
  subject s;
  s.options = options.options;
  s.time_factor = std::max(1u, options.time_factor);
  s.directory = (*directory)->path();
  bool create_refused = false;
  for (const auto* checks : all_checks()) {
    for (const auto& check : *checks) {
      if (!is_wanted(options.only, check.name)) continue;
      auto done = run_check(check, s, copy->get(), options.check_limit, &create_refused);
      if (!done) return done.error();
      add(std::move(*done));
      if (create_refused) return report;
    }
  }
  return report;
}

}  // namespace ccbox
