// The proxy pair beside a bare splice relay, squid, tinyproxy, haproxy and a socat bridge: throughput, new
// tunnels, kept connections, memory, decisions, and what it adds to starting a sandbox. The peers take turns,
// so that they share whatever else the machine is doing; CPU is that of the proxies' processes alone.
//
//   bench_egress [--rounds N] [--mib N] [--only throughput|connect|request|memory|decision|start]
//
// Peers that are not installed are named and left out.
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <list>
#include <unordered_set>

#include "egress_policy.hpp"
#include "hosted_pairs.hpp"
#include "measure.hpp"
#include "origin.hpp"
#include "peer.hpp"
#include "relay.hpp"
#include "traffic.hpp"

using namespace ccbox::bench;
namespace egress = ccbox::egress;

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "bench: %s\n", what.c_str());
  std::exit(1);
}

struct field {
  std::uint16_t origin_port = 0;
  std::list<peer> peers;  // the relay and the pair among them
  const peer* relay = nullptr;
};

int listen_on_unix(const std::string& path) {
  sockaddr_un where = {};
  where.sun_family = AF_UNIX;
  std::strncpy(where.sun_path, path.c_str(), sizeof where.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::bind(fd, reinterpret_cast<sockaddr*>(&where), sizeof where) != 0 || ::listen(fd, 4096) != 0)
    fail("cannot listen on " + path);
  return fd;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void print_title(const std::string& what, int rounds) {
  double load = 0;
  ::getloadavg(&load, 1);
  std::printf("\n%s (median of %d; load average %.1f)\n", what.c_str(), rounds, load);
}

void throughput(const field& f, std::size_t tunnels, std::uint64_t bytes, int rounds) {
  std::vector<std::vector<double>> wall(f.peers.size()), cpu(f.peers.size());
  for (int round = -1; round < rounds; ++round) {
    std::size_t i = 0;
    for (const auto& one : f.peers) {
      const double before = one.settled_cpu_ms();
      const double took = download_ms(one, f.origin_port, tunnels, bytes);
      if (round >= 0) {
        wall[i].push_back(took);
        cpu[i].push_back(one.settled_cpu_ms() - before);
      }
      ++i;
    }
  }
  print_title("throughput, " + std::to_string(tunnels) + " tunnels, " + std::to_string(bytes >> 20) + " MiB",
              rounds);
  std::printf("  %-22s %8s %12s %13s\n", "", "MiB/s", "of the relay", "CPU ms/GiB");
  std::size_t i = 0, relay = 0;
  for (const auto& one : f.peers) {
    if (&one == f.relay) relay = i;
    ++i;
  }
  i = 0;
  for (const auto& one : f.peers) {
    // Paired by round: what disturbs one round disturbs both.
    std::vector<double> ratios;
    for (std::size_t r = 0; r < wall[i].size(); ++r)
      ratios.push_back(wall[relay][r] / wall[i][r]);
    std::printf("  %-22s %8.0f %11.0f%% %13.0f\n", one.name.c_str(),
                static_cast<double>(bytes >> 20) / median_of(wall[i]) * 1e3, median_of(ratios) * 100,
                median_of(cpu[i]) * 1073741824.0 / static_cast<double>(bytes));
    ++i;
  }
}

// CPU microseconds of one step, by peer.
template <class Work>
void cpu_each(const std::string& title, const field& f, int rounds, int steps, const Work& work) {
  std::vector<std::pair<const peer*, std::vector<double>>> got;
  for (const auto& one : f.peers)
    if (!one.processes.empty() && work(one, 1)) got.push_back({&one, {}});
  for (int round = -1; round < rounds; ++round)
    for (auto& [one, samples] : got) {
      const double before = one->settled_cpu_ms();
      work(*one, steps);
      const double took = one->settled_cpu_ms() - before;
      if (round >= 0) samples.push_back(took * 1e3 / steps);
    }
  print_title(title, rounds);
  double relay = 0;
  for (const auto& [one, samples] : got)
    if (one == f.relay) relay = median_of(samples);
  for (const auto& [one, samples] : got) {
    const double us = median_of(samples);
    std::printf("  %-22s %8.1f us CPU", one->name.c_str(), us);
    if (relay > 0) std::printf(" %8.2fx", us / relay);
    std::printf("\n");
  }
}

void idle_tunnels(const field& f) {
  print_title("memory of an idle tunnel", 1);
  for (const auto& one : f.peers) {
    if (one.most_tunnels == 0) continue;
    std::vector<int> open;
    for (int i = 0; i < 20; ++i)
      open.push_back(open_tunnel(one, f.origin_port));
    const double before = one.pss_kib();
    while (open.size() < one.most_tunnels + 20)
      open.push_back(open_tunnel(one, f.origin_port));
    std::printf("  %-22s %8.2f KiB\n", one.name.c_str(),
                (one.pss_kib() - before) / static_cast<double>(one.most_tunnels));
    for (const int fd : open)
      ::close(fd);
  }
}

void idle_pairs(hosted_pairs& host) {
  host.open();
  const double before = pss_mib(host.pid());
  constexpr int count = 200;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i)
    host.open();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  std::printf("\nidle pair: %.1f KiB and %.0f us to open, over %d\n",
              (pss_mib(host.pid()) - before) * 1024 / count, took.count() / count, count);
}

void decisions(int rounds) {
  constexpr int entries = 10'000;
  std::vector<egress::rule> rules;
  std::unordered_set<std::string> names;
  for (int i = 0; i < entries; ++i) {
    const auto name = "host" + std::to_string(i) + ".zone" + std::to_string(i % 97) + ".example";
    egress::rule one;
    one.action = i % 10 == 9 ? egress::rule_action::deny : egress::rule_action::allow;
    one.pattern = i % 3 == 1 ? "*." + name : i % 3 == 2 ? "a.*." + name : name;
    rules.push_back(one);
    names.insert(name);
  }
  const auto built = egress::egress_policy::build(rules);
  if (!std::holds_alternative<std::shared_ptr<const egress::egress_policy>>(built)) fail("a rule is refused");
  const auto& policy = *std::get<std::shared_ptr<const egress::egress_policy>>(built);
  struct question {
    const char* what;
    std::string prefix;
    int first;
  };
  print_title("a decision on 10,000 entries", rounds);
  const auto nanoseconds = [&](const auto& call, const auto& asked) {
    std::vector<double> samples;
    std::size_t sink = 0;
    for (int round = 0; round < rounds * 5; ++round) {
      const auto start = std::chrono::steady_clock::now();
      for (const auto& one : asked)
        sink += call(one);
      const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
      samples.push_back(took.count() / static_cast<double>(asked.size()));
    }
    if (sink == static_cast<std::size_t>(-1)) std::printf(" ");
    return median_of(samples);
  };
  std::vector<std::string> texts;
  for (int i = 0; i < entries; i += 3)
    texts.push_back("host" + std::to_string(i) + ".zone" + std::to_string(i % 97) + ".example");
  std::printf("  %-34s %8.0f ns\n", "(a hash set of the same names)",
              nanoseconds([&](const std::string& name) { return names.count(name); }, texts));
  for (const auto& [what, prefix, first] : {question{"a name", "", 0},
                                            {"below a wildcard", "deep.er.", 1},
                                            {"a label in the middle", "a.any.", 2},
                                            {"no entry, 5 labels", "x.y.", 0},
                                            {"no entry, 32 labels", "", -1}}) {
    std::vector<egress::destination> asked;
    for (int i = std::max(first, 0); i < entries; i += 3) {
      auto name = prefix + "host" + std::to_string(i) + ".zone" + std::to_string(i % 97) + ".example";
      if (first < 0)
        for (int label = 0; label < 29; ++label)
          name = "y." + name;
      auto parsed = egress::parse_host(name, 443);
      asked.push_back(std::get<egress::destination>(std::move(parsed)));
    }
    std::printf(
        "  %-34s %8.0f ns\n", what,
        nanoseconds([&](const egress::destination& to) { return policy.decide(to).allowed ? 1u : 0u; },
                    asked));
  }
}

void starting(const std::string& bin, const std::string& scratch, int rounds) {
  const auto manifest = [&](const char* name, std::initializer_list<const char*> plugins) {
    const auto path = scratch + "/" + name;
    std::ofstream out(path);
    out << "plugins:\n";
    for (const char* one : plugins)
      out << "  - path: " << bin << "/../plugins/" << one << "\n";
    return path;
  };
  const auto run = [&](const std::string& plugins) {
    return run_command({bin + "/ccbox", "run", "--plugins", plugins, "--", "/usr/bin/true"});
  };
  const auto without = manifest("without.yaml", {"bubblewrap.so"});
  const auto with = manifest("with.yaml", {"bubblewrap.so", "egress.so"});
  std::vector<contender> launch;
  launch.push_back({"ccbox run, no pair", [&] { return run(without); }});
  launch.push_back({"ccbox run with its pair", [&] { return run(with); }});
  if (::chdir(scratch.c_str()) != 0) fail("no scratch directory");
  race(launch, rounds * 5);
  print_table("start a sandbox, run true, end it", launch, 0);
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 9;
  std::uint64_t mib = 512;
  std::string only;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--rounds"))
      rounds = std::max(1, std::atoi(argv[i + 1]));
    else if (!std::strcmp(argv[i], "--mib"))
      mib = static_cast<std::uint64_t>(std::max(1, std::atoi(argv[i + 1])));
    else if (!std::strcmp(argv[i], "--only"))
      only = argv[i + 1];
    else
      fail(std::string("unknown option ") + argv[i]);
  }
  const auto wanted = [&](const char* what) { return only.empty() || only == what; };
  ::signal(SIGPIPE, SIG_IGN);
  for (const int end : {SIGINT, SIGTERM})
    ::signal(end, [](int) { std::exit(1); });
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  rlimit files = {};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  const auto bin = std::filesystem::canonical("/proc/self/exe").parent_path().string();
  const auto plugin_file = bin + "/../plugins/egress.so";
  char scratch[] = "/tmp/ccbox-bench.XXXXXX";
  if (!::mkdtemp(scratch)) fail("no scratch directory");
  std::filesystem::permissions(scratch, std::filesystem::perms(0755));

  field f;
  const auto origin = listen_on_loopback(), relay = listen_on_loopback();
  f.origin_port = origin.port;
  std::vector<pid_t> to_end = {run_forked([&] { run_origin(origin.fd); }),
                               run_forked([&] { run_relay(relay.fd); })};
  ::close(origin.fd);
  ::close(relay.fd);
  {
    hosted_pairs host(plugin_file, f.origin_port), bridged(plugin_file, f.origin_port);
    f.peers.push_back({"direct", f.origin_port, opening::nothing, {}, false, 0, {}});
    f.relay = &f.peers.emplace_back(
        peer{"bare splice relay", relay.port, opening::connect, {}, false, 2000, {to_end.back()}});
    const auto http = host.open();
    f.peers.push_back({"our pair", http, opening::connect, http, false, 2000, {host.pid()}});
    const auto add = [&](const char* name, std::optional<peer> made) {
      if (made) {
        to_end.push_back(made->processes.front());
        f.peers.push_back(std::move(*made));
      } else {
        std::printf("not installed: %s\n", name);
      }
    };
    const auto path = std::string(scratch) + "/pair";
    const int bridge = listen_on_unix(path);
    bridged.open(bridge);
    ::close(bridge);
    auto socat = start_socat(path);
    if (socat) {
      socat->http_port = socat->port;
      socat->processes.push_back(bridged.pid());
    }
    add("socat", std::move(socat));
    add("haproxy", start_haproxy(scratch, f.origin_port));
    add("squid", start_squid(scratch));
    add("tinyproxy", start_tinyproxy(scratch));

    if (wanted("throughput"))
      for (const std::size_t tunnels : {1, 16})
        throughput(f, tunnels, mib << 20, rounds);
    if (wanted("connect"))
      cpu_each("a new tunnel, two bytes through it, its end", f, rounds, 300, [&](const peer& by, int count) {
        connect_repeatedly(by, f.origin_port, count);
        return true;
      });
    if (wanted("request"))
      cpu_each("a request in absolute form on a kept connection", f, rounds, 1000,
               [&](const peer& by, int count) {
                 if (by.http_port) request_repeatedly(by, f.origin_port, count);
                 return by.http_port.has_value();
               });
    if (wanted("memory")) {
      idle_tunnels(f);
      hosted_pairs fresh(plugin_file, f.origin_port);
      idle_pairs(fresh);
    }
  }
  for (const pid_t pid : to_end)
    end_process(pid);
  if (wanted("decision")) decisions(rounds);
  if (wanted("start")) starting(bin, scratch, rounds);
  if (::chdir("/") == 0) std::filesystem::remove_all(scratch);
}
