// What name rules cost while commands run: work inside of bare bwrap with the same view, of ccbox without
// name rules, and of ccbox, in turns, so that they share whatever else the machine is doing. Starting is not
// in it (bench_launch); each figure is taken by a program inside (within.cpp).
//
//   bench_broker [--rounds N] [--only NAME]... [--directory DIR] [--ccbox EXECUTABLE]...
//
// DIR is where the work is done (/tmp; what file system it has matters). Each --ccbox is one more peer:
// another build, to compare with.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "bare_bwrap.hpp"
#include "log.hpp"
#include "measure.hpp"
#include "paths.hpp"
#include "prepared_launch.hpp"
#include "workload.hpp"

using namespace ccbox;
using namespace ccbox::bench;

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "bench: %s\n", what.c_str());
  std::exit(1);
}

template <class T>
T need(result<T> value) {
  if (!value) fail(value.error().what + (value.error().hint.empty() ? "" : " (" + value.error().hint + ")"));
  return std::move(*value);
}

struct inside {
  std::string name;
  std::vector<std::string> argv;  // a command follows
  std::vector<double> ns = {}, cpu_ms = {};
};

double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1) + 0.5)];
}

sample run_inside(const std::string& directory, const inside& peer, const std::vector<std::string>& arguments,
                  std::string& output) {
  auto argv = peer.argv;
  argv.push_back(directory + "/within");
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return run_command(argv, output);
}

void run_once(const std::string& directory, const workload& work, inside& peer) {
  for (const auto& each : work.comes_to_be)
    std::filesystem::remove_all(directory + "/" + each);
  std::string output;
  const double all = run_inside(directory, peer, work.arguments, output).cpu_ms;
  peer.ns.push_back(std::atof(output.c_str()));
  // Of everything that takes part, the broker too; without what starting takes.
  peer.cpu_ms.push_back(
      work.prepared ? 0 : all - run_inside(directory, peer, {"run", ":", "0", "true"}, output).cpu_ms);
}

// Paired by round: what disturbs one round disturbs all.
std::vector<double> ratios(const std::vector<double>& of, const std::vector<double>& to) {
  std::vector<double> all;
  for (std::size_t i = 0; i < of.size(); ++i)
    all.push_back(of[i] / to[i]);
  return all;
}

void measure(const std::string& directory, const workload& work, std::vector<inside>& peers, int rounds) {
  for (auto& peer : peers) {
    run_once(directory, work, peer);  // warm
    peer.ns.clear();
    peer.cpu_ms.clear();
  }
  for (int round = 0; round < rounds; ++round)
    // Whoever is first in a round has what the round before has left behind.
    for (std::size_t i = 0; i < peers.size(); ++i)
      run_once(directory, work, peers[(i + static_cast<std::size_t>(round)) % peers.size()]);
  double load = 0;
  ::getloadavg(&load, 1);
  const bool single = work.operations > 1;
  std::printf("\n%s: %s (%d rounds; load average %.1f", work.name.c_str(), work.title.c_str(), rounds, load);
  if (work.target > 0) std::printf("; target %.2fx", work.target);
  std::printf(")\n  %-34s %12s %8s   %-12s   %s\n", "", single ? "us a call" : "ms", "ratio", "quartiles",
              "of the fastest       processor");
  const double unit = single ? 1e3 * static_cast<double>(work.operations) : 1e6;
  for (const auto& peer : peers) {
    const auto wall = ratios(peer.ns, peers[0].ns);
    std::printf("  %-34s %12.2f %7.2fx   %5.2f - %-5.2f   %.2f / %.2f = %.2fx", peer.name.c_str(),
                quantile(peer.ns, 0.5) / unit, quantile(wall, 0.5), quantile(wall, 0.25),
                quantile(wall, 0.75), quantile(peer.ns, 0) / unit, quantile(peers[0].ns, 0) / unit,
                quantile(peer.ns, 0) / quantile(peers[0].ns, 0));
    if (!work.prepared) std::printf("   %.2fx", quantile(ratios(peer.cpu_ms, peers[0].cpu_ms), 0.5));
    std::printf("\n");
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  set_log_level(log_level::error);
  int rounds = 9;
  std::vector<std::string> only, others;
  std::string place = "/tmp";
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--rounds"))
      rounds = std::max(1, std::atoi(argv[i + 1]));
    else if (!std::strcmp(argv[i], "--only"))
      only.push_back(argv[i + 1]);
    else if (!std::strcmp(argv[i], "--directory"))
      place = argv[i + 1];
    else if (!std::strcmp(argv[i], "--ccbox"))
      others.push_back(argv[i + 1]);
    else
      fail(std::string("unknown option ") + argv[i]);
  }
  for (const auto& name : only)
    if (std::none_of(workloads().begin(), workloads().end(),
                     [&](const workload& w) { return w.name == name; }))
      fail("no work is called '" + name + "'");

  std::string directory = place + "/ccbox-bench.XXXXXX";
  if (!mkdtemp(directory.data()) || chdir(directory.c_str()) != 0) fail("no directory in '" + place + "'");
  const auto parts = need(find_installation());
  const auto bin = std::filesystem::path(parts.init).parent_path().string();
  furnish(directory, bin + "/within");

  const auto config = need(load_policy_config(parts.policy));
  const auto plugins =
      need(registry::build(need(load_manifest(parts.manifest, parts.plugin_directory)), CCBOX_PROBE_QUICK));
  const sandbox_context context{plugins.get(), &config, gather_host_facts(), parts.init};
  sandbox_spec spec;
  spec.session_id = spec.workspace_id = "bench";
  spec.bind_mounts = {{directory, directory, false}};
  spec.guest_workdir = directory;
  const auto prepared = need(prepare(context, spec));

  std::vector<inside> peers;
  peers.push_back({"bwrap, same view", bare_bwrap(prepared.how)});
  const auto add = [&](const std::string& name, const std::string& program,
                       const std::vector<std::string>& options) {
    inside peer{name, {program, "run", "--quiet"}};
    peer.argv.insert(peer.argv.end(), options.begin(), options.end());
    peer.argv.push_back("--");
    peers.push_back(std::move(peer));
  };
  add("ccbox run, without name rules", bin + "/ccbox", {"--without", "fs_name_deny"});
  add("ccbox run", bin + "/ccbox", {});
  for (const auto& program : others)
    add(program, program, {});

  for (const auto& work : workloads())
    if (only.empty() || std::find(only.begin(), only.end(), work.name) != only.end())
      measure(directory, work, peers, rounds);
  if (chdir("/") == 0) std::filesystem::remove_all(directory);
}
