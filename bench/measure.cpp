#include "measure.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>

extern char** environ;

namespace ccbox::bench {

namespace {

using clock = std::chrono::steady_clock;

double ms_since(clock::time_point start) {
  return std::chrono::duration<double, std::milli>(clock::now() - start).count();
}

double ms(const timeval& t) {
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
}

template <class Member>
double middle(std::vector<sample> samples, Member member) {
  std::sort(samples.begin(), samples.end(),
            [&](const sample& a, const sample& b) { return a.*member < b.*member; });
  return samples[samples.size() / 2].*member;
}

sample run(const std::vector<std::string>& argv, int output) {
  std::vector<char*> words;
  for (const auto& word : argv)
    words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, 1);
  if (!std::getenv("CCBOX_BENCH_VERBOSE"))
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  const auto start = clock::now();
  pid_t pid = -1;
  const int spawned = posix_spawnp(&pid, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  rusage usage{};
  if (spawned != 0 || wait4(pid, &status, 0, &usage) != pid || !WIFEXITED(status) ||
      WEXITSTATUS(status) != 0) {
    std::fprintf(stderr, "bench: '%s' failed (CCBOX_BENCH_VERBOSE=1 shows what it says)\n", argv[0].c_str());
    std::exit(1);
  }
  return {ms_since(start), ms(usage.ru_utime) + ms(usage.ru_stime)};
}

}  // namespace

sample run_command(const std::vector<std::string>& argv) {
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  const auto took = run(argv, nowhere);
  ::close(nowhere);
  return took;
}

sample run_command(const std::vector<std::string>& argv, std::string& output) {
  const int file = ::memfd_create("output", MFD_CLOEXEC);
  const auto took = run(argv, file);
  output.assign(4096, '\0');
  const auto size = ::pread(file, output.data(), output.size(), 0);
  ::close(file);
  output.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  return took;
}

sample time_call(const std::function<void()>& call) {
  const auto start = clock::now();
  call();
  return {ms_since(start), 0};
}

void race(std::vector<contender>& contenders, int rounds) {
  for (auto& each : contenders)
    each.once();  // warm
  for (int i = 0; i < rounds; ++i)
    for (auto& each : contenders)
      each.samples.push_back(each.once());
}

sample median(const std::vector<sample>& samples) {
  return {middle(samples, &sample::wall_ms), middle(samples, &sample::cpu_ms)};
}

void print_table(const std::string& title, const std::vector<contender>& contenders, std::size_t baseline) {
  const sample base = median(contenders[baseline].samples);
  std::printf("\n%s (median of %zu; ratios to %s)\n", title.c_str(), contenders[0].samples.size(),
              contenders[baseline].name.c_str());
  std::printf("  %-28s %10s %10s %8s %10s %8s\n", "", "wall ms", "+ms", "ratio", "cpu ms", "ratio");
  for (const auto& each : contenders) {
    const sample m = median(each.samples);
    std::printf("  %-28s %10.2f %+10.2f %7.2fx %10.2f", each.name.c_str(), m.wall_ms,
                m.wall_ms - base.wall_ms, m.wall_ms / base.wall_ms, m.cpu_ms);
    if (base.cpu_ms > 0) std::printf(" %7.2fx", m.cpu_ms / base.cpu_ms);
    std::printf("\n");
  }
}

double pss_mib(int pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/smaps_rollup");
  std::string key;
  while (in >> key)
    if (key == "Pss:") {
      double kib = 0;
      in >> kib;
      return kib / 1024;
    }
  return 0;
}

}  // namespace ccbox::bench
