#include "peer.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "measure.hpp"

namespace ccbox::bench {

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "bench: %s\n", what.c_str());
  std::exit(1);
}

std::string find_program(const std::string& name) {
  for (const char* directory : {"/usr/local/bin/", "/usr/bin/", "/bin/", "/usr/local/sbin/", "/usr/sbin/"})
    if (::access((directory + name).c_str(), X_OK) == 0) return directory + name;
  return {};
}

std::uint16_t free_port() {
  const auto made = listen_on_loopback();
  ::close(made.fd);
  return made.port;
}

template <class Each>
void for_each_process(pid_t root, const Each& each) {
  each(root);
  const auto at = "/proc/" + std::to_string(root) + "/task";
  std::ifstream children(at + "/" + std::to_string(root) + "/children");
  for (pid_t pid = 0; children >> pid;)
    for_each_process(pid, each);
}

// Of the process itself, to the nanosecond, and of its children that were waited for, to the tick.
double cpu_ms_of(pid_t pid) {
  clockid_t clock = {};
  timespec own = {};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &own) != 0) return 0;
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(in)), {});
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 2)));
  std::string skipped;
  for (int i = 0; i < 13; ++i)
    fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return static_cast<double>(own.tv_sec) * 1e3 + static_cast<double>(own.tv_nsec) / 1e6 +
         (user + system) / ticks * 1e3;
}

bool accepts(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where = {};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  where.sin_port = htons(port);
  const bool done = ::connect(fd, reinterpret_cast<sockaddr*>(&where), sizeof where) == 0;
  ::close(fd);
  return done;
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  ::chmod(path.c_str(), 0644);
}

// One that changes its user forgets to die with its parent.
std::vector<pid_t> running;

void end_all() {
  while (!running.empty())
    end_process(running.back());
}

peer started(std::string name, std::uint16_t port, std::vector<std::string> argv) {
  peer out;
  out.name = std::move(name);
  out.port = port;
  out.processes = {run_program(argv)};
  wait_for_port(port, out.name);
  return out;
}

}  // namespace

loopback_listener listen_on_loopback() {
  loopback_listener out;
  out.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where = {};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof where;
  if (::bind(out.fd, reinterpret_cast<sockaddr*>(&where), size) != 0 || ::listen(out.fd, 4096) != 0 ||
      ::getsockname(out.fd, reinterpret_cast<sockaddr*>(&where), &size) != 0)
    fail("cannot listen on 127.0.0.1");
  out.port = ntohs(where.sin_port);
  return out;
}

double peer::cpu_ms() const {
  double sum = 0;
  for (const pid_t root : processes)
    for_each_process(root, [&](pid_t pid) { sum += cpu_ms_of(pid); });
  return sum;
}

double peer::settled_cpu_ms() const {
  double last = cpu_ms();
  for (int quiet = 0; quiet < 3;) {
    ::usleep(2000);
    const double now = cpu_ms();
    quiet = now - last < 0.02 ? quiet + 1 : 0;
    last = now;
  }
  return last;
}

double peer::pss_kib() const {
  double sum = 0;
  for (const pid_t root : processes)
    for_each_process(root, [&](pid_t pid) { sum += pss_mib(pid) * 1024; });
  return sum;
}

pid_t run_forked(const std::function<void()>& work) {
  std::fflush(stdout);
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid < 0) fail("fork failed");
  if (pid > 0) {
    if (running.empty()) std::atexit(end_all);
    running.push_back(pid);
    return pid;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) std::_Exit(1);
  work();
  std::_Exit(0);
}

pid_t run_program(const std::vector<std::string>& argv) {
  return run_forked([&] {
    const int null = ::open("/dev/null", O_RDWR);
    for (const int fd : {0, 1, 2})
      if (fd == 0 || !std::getenv("CCBOX_BENCH_VERBOSE")) ::dup2(null, fd);
    std::vector<char*> words;
    for (const auto& word : argv)
      words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    ::execv(words[0], words.data());
  });
}

void end_process(pid_t pid) {
  std::erase(running, pid);
  std::vector<pid_t> all;
  for_each_process(pid, [&](pid_t one) { all.push_back(one); });
  for (const pid_t one : all)
    ::kill(one, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

void wait_for_port(std::uint16_t port, const std::string& name) {
  for (int i = 0; i < 2000; ++i) {
    if (accepts(port)) return;
    ::usleep(5000);
  }
  fail(name + " does not listen (CCBOX_BENCH_VERBOSE=1 shows what it says)");
}

std::optional<peer> start_squid(const std::string& scratch) {
  const auto program = find_program("squid");
  if (program.empty()) return std::nullopt;
  const auto port = free_port();
  const auto file = scratch + "/squid.conf";
  write_file(file, "http_port 127.0.0.1:" + std::to_string(port) +
                       "\nhttp_access allow all\ncache deny all\nvia off\nforwarded_for delete\n"
                       "access_log none\ncache_log /dev/null\ncache_store_log none\npid_filename none\n"
                       "pinger_enable off\nmax_filedescriptors 16384\ncoredump_dir none\n"
                       "shutdown_lifetime 0 seconds\nvisible_hostname bench\n");
  auto out = started("squid", port, {program, "-N", "-f", file});
  out.http_port = port;
  out.most_tunnels = 2000;
  return out;
}

std::optional<peer> start_tinyproxy(const std::string& scratch) {
  const auto program = find_program("tinyproxy");
  if (program.empty()) return std::nullopt;
  const auto port = free_port();
  const auto file = scratch + "/tinyproxy.conf";
  write_file(file, "Port " + std::to_string(port) +
                       "\nListen 127.0.0.1\nTimeout 600\nMaxClients 4096\nLogLevel Critical\n"
                       "DisableViaHeader Yes\nLogFile \"" +
                       scratch + "/tinyproxy.log\"\n");
  auto out = started("tinyproxy", port, {program, "-d", "-c", file});
  out.ends_connections = true;
  out.http_port = port;
  out.most_tunnels = 2000;
  return out;
}

std::optional<peer> start_haproxy(const std::string& scratch, std::uint16_t origin_port) {
  const auto program = find_program("haproxy");
  if (program.empty()) return std::nullopt;
  const auto port = free_port(), http_port = free_port();
  const auto file = scratch + "/haproxy.cfg";
  const auto server = "  server origin 127.0.0.1:" + std::to_string(origin_port) + "\n";
  write_file(file,
             "global\n  maxconn 4000\n  nbthread 1\n"
             "defaults\n  timeout connect 10s\n  timeout client 1h\n  timeout server 1h\n"
             "listen tunnels\n  mode tcp\n  option splice-auto\n  bind 127.0.0.1:" +
                 std::to_string(port) + "\n" + server +
                 "listen requests\n  mode http\n  http-reuse always\n  bind 127.0.0.1:" +
                 std::to_string(http_port) + "\n" + server);
  auto out = started("haproxy (TCP relay)", port, {program, "-db", "-f", file});
  out.tunnels = opening::nothing;
  out.http_port = http_port;
  out.most_tunnels = 2000;
  return out;
}

std::optional<peer> start_socat(const std::string& path) {
  const auto program = find_program("socat");
  if (program.empty()) return std::nullopt;
  const auto port = free_port();
  return started("socat bridge + pair", port,
                 {program, "TCP-LISTEN:" + std::to_string(port) + ",bind=127.0.0.1,fork,backlog=4096,nodelay",
                  "UNIX-CONNECT:" + path});
}

}  // namespace ccbox::bench
