// As root with cgroups, and as a user without: the mechanism differs, the promises do not.
#include "limits.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cgroup.hpp"
#include "support/os_faults.hpp"
#include "support/result_printing.hpp"
#include "support/run_command.hpp"
#include "support/waiting.hpp"

using namespace ccbox;
namespace fs = std::filesystem;

namespace {

const limit_context here{CCBOX_TEST_BINARY_DIR "/bin/ccbox-init", true};

bool has_cgroups() {
  return probe_limits().memory.starts_with("cgroup");
}

resource_limits memory_of(std::uint64_t bytes) {
  resource_limits l;
  l.memory_bytes = bytes;
  return l;
}

// A command under the limits, as an enclosure would run it.
result<child> run_under(const limit_group& group, const std::string& script) {
  spawn_request request;
  request.argv = {"/bin/bash", "-c", script};
  request.env = {{"PATH", "/usr/bin:/bin"}};
  request.cgroup_directories = group.cgroup_directories();
  for (const auto& [resource, value] : group.rlimits()) {
    request.rlimits.emplace_back(static_cast<int>(resource), value);
  }
  return spawn(request);
}

// 256 MiB in one process.
const std::string hog = "x=$(head -c 268435456 /dev/zero | tr '\\0' x); echo ${#x}";

std::vector<std::string> leftovers() {
  std::vector<std::string> out;
  for (const char* controller : {"memory", "pids", "cpu"}) {
    const auto place = find_cgroup_place(controller);
    if (!place) continue;
    for (const auto& entry : fs::directory_iterator(place->directory)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("ccbox-" + std::to_string(::getpid()) + "-")) out.push_back(entry.path());
    }
  }
  return out;
}

}  // namespace

TEST_CASE("without limits there is no group and no rlimit") {
  const auto group = limit_group::create({}, "none", here);
  REQUIRE(group);
  CHECK(group->cgroup_directories().empty());
  CHECK(group->rlimits().empty());
  CHECK(group->details().empty());
  CHECK_FALSE(group->out_of_memory());
}

TEST_CASE("the probe names a mechanism for every limit that can be set") {
  const limit_capability c = probe_limits();
  CHECK(c.file_size == "rlimit");
  CHECK(c.wall_time == "timer");
  CHECK_FALSE(c.memory.empty());
  CHECK_FALSE(c.note.empty());
  const auto claims = [](const std::string& mechanism, const resource_limits& l) {
    const auto group = limit_group::create(l, "probe", here);
    CHECK(group.has_value() == !mechanism.empty());
    CHECK(check_limits(l, true).has_value() == !mechanism.empty());
    if (group && mechanism.starts_with("cgroup")) CHECK(group->cgroup_directories().size() == 1);
    if (group && mechanism == "rlimit") CHECK(group->rlimits().size() == 1);
  };
  resource_limits l;
  l.processes = 5;
  claims(c.processes, l);
  l = {};
  l.cpus = 0.5;
  claims(c.cpus, l);
  claims(c.memory, memory_of(32 << 20));
}

TEST_CASE("a process over the memory limit does not get the memory, and a kill for it is known") {
  const auto group = limit_group::create(memory_of(64 << 20), "memory", here);
  REQUIRE(group);
  auto modest = run_under(*group, "x=$(head -c 1048576 /dev/zero | tr '\\0' x); test ${#x} = 1048576");
  REQUIRE(modest);
  CHECK(modest->wait()->code() == 0);
  CHECK_FALSE(group->out_of_memory());
  auto greedy = run_under(*group, hog);
  REQUIRE(greedy);
  CHECK(greedy->wait()->code() != 0);
  CHECK(group->out_of_memory() == has_cgroups());  // an rlimit makes allocation fail instead
}

TEST_CASE("the memory limit counts the session as a whole only where a cgroup does, and the details say so") {
  const auto group = limit_group::create(memory_of(64 << 20), "detail", here);
  REQUIRE(group);
  REQUIRE(group->details().size() == 1);
  CHECK(group->details()[0].second == (has_cgroups() ? probe_limits().memory + ", of the session"
                                                     : "rlimit, address space of each process"));
}

TEST_CASE("more processes than the limit cannot be started") {
  resource_limits l;
  l.processes = 20;
  const auto group = limit_group::create(l, "processes", here);
  const limit_capability c = probe_limits();
  if (c.processes.empty()) {
    CHECK(group.error().code == error_code::unenforceable);
    return;
  }
  REQUIRE(group);
  if (c.processes == "rlimit") {
    CHECK(group->rlimits()[0] == std::pair<std::uint32_t, std::uint64_t>(RLIMIT_NPROC, 21));
    CHECK(limit_group::create(l, "s", {here.init_path, false}).error().what.find("all that this user runs") !=
          std::string::npos);
    return;
  }
  auto few = run_under(*group, "for i in {1..10}; do sleep 100 & done; kill $(jobs -p)");
  REQUIRE(few);
  CHECK(few->wait()->code() == 0);
  auto many =
      run_under(*group, "exec 2>/dev/null; for i in {1..40}; do (exec sleep 100) & done; kill $(jobs -p)");
  REQUIRE(many);
  CHECK(many->wait()->code() != 0);
}

TEST_CASE("a file cannot grow beyond the limit") {
  resource_limits l;
  l.file_size_bytes = 4096;
  const auto group = limit_group::create(l, "file", here);
  REQUIRE(group);
  CHECK(group->rlimits()[0] == std::pair<std::uint32_t, std::uint64_t>(RLIMIT_FSIZE, 4096));
  CHECK(group->details()[0].first == "fileSize");
  auto c = run_under(*group,
                     "f=$(mktemp); trap 'rm -f $f' EXIT; head -c 4096 /dev/zero >$f && ! head -c 4097 "
                     "/dev/zero >$f 2>/dev/null");
  REQUIRE(c);
  CHECK(c->wait()->code() == 0);
}

TEST_CASE("a processor limit holds the session to its share") {
  resource_limits l;
  l.cpus = 0.1;
  const auto group = limit_group::create(l, "cpu", here);
  if (probe_limits().cpus.empty()) {
    CHECK(group.error().code == error_code::unenforceable);
    CHECK(group.error().what.starts_with("limit cpus cannot be enforced here: "));
    return;
  }
  REQUIRE(group);
  const auto c = run_under(*group, "while :; do :; done");
  REQUIRE(c);
  CHECK(test::eventually([&] {
    std::ifstream statistics(group->cgroup_directories().at(0) + "/cpu.stat");
    std::uint64_t throttled = 0, value = 0;
    for (std::string key; statistics >> key >> value;) {
      if (key == "nr_throttled") throttled = value;
    }
    return throttled >= 2;
  }));
}

TEST_CASE("a group ends its processes and leaves no directory") {
  if (!has_cgroups()) {
    CHECK(leftovers().empty());
    return;
  }
  std::string directory;
  std::optional<child> c;
  {
    auto group = limit_group::create(memory_of(64 << 20), "teardown", here);
    REQUIRE(group);
    directory = group->cgroup_directories().at(0);
    auto started = run_under(*group, "sleep 100 & sleep 100");
    REQUIRE(started);
    c = std::move(*started);
  }
  CHECK(test::wait_until_ended(c->pidfd()));
  c.reset();
  CHECK(test::wait_until_removed(directory));
}

TEST_CASE("a hundred groups come and go") {
  if (!has_cgroups()) {
    REQUIRE(limit_group::create(memory_of(64 << 20), "s", here));
    return;
  }
  for (int i = 0; i < 100; ++i) {
    resource_limits l = memory_of(64 << 20);
    l.processes = 10;
    REQUIRE(limit_group::create(l, "s" + std::to_string(i), here));
  }
  CHECK(leftovers().empty());
}

TEST_CASE("an owner that is killed leaves no group and nothing that ran in it") {
  if (!has_cgroups()) {
    CHECK(leftovers().empty());
    return;
  }
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  unique_fd reader(ends[0]), writer(ends[1]);
  const pid_t owner = ::fork();
  if (owner == 0) {
    // A fresh process of its own: the janitor of the test's process must not be the one at work.
    const std::string self = fs::read_symlink("/proc/self/exe");
    ::dup2(writer.get(), 1);
    ::execl(self.c_str(), self.c_str(), "--test-case=helper: own a group and pause", "--no-skip", nullptr);
    ::_exit(127);
  }
  writer.reset();
  std::string text;
  for (char c = 0; ::read(reader.get(), &c, 1) == 1;) {
    text += c;
    if (text.ends_with("<end>")) break;
  }
  const std::size_t at = text.find("<begin>");
  REQUIRE(at != std::string::npos);
  const std::string directory = text.substr(at + 7, text.size() - at - 12);
  REQUIRE(fs::exists(directory));
  // Owner, its janitor, and the two in the group.
  const auto tree = test::open_process_tree(owner);
  REQUIRE(tree.size() == 4);
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  for (const unique_fd& process : tree)
    CHECK(test::wait_until_ended(process.get()));
  CHECK_FALSE(fs::exists(directory));
}

TEST_CASE("helper: own a group and pause" * doctest::skip()) {
  auto group = limit_group::create(memory_of(64 << 20), "killed", here);
  REQUIRE(group);
  spawn_request request;
  request.argv = {"/bin/bash", "-c", "sleep 100 & echo; sleep 100"};
  request.env = {{"PATH", "/usr/bin:/bin"}};
  request.cgroup_directories = group->cgroup_directories();
  request.outlives_parent = true;  // so that it is the janitor that has to end it
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  request.descriptors = {{ends[1], 1}};
  auto c = spawn(request);
  REQUIRE(c);
  char newline = 0;
  REQUIRE(::read(ends[0], &newline, 1) == 1);
  const std::string text = "<begin>" + group->cgroup_directories().at(0) + "<end>";
  REQUIRE(::write(1, text.data(), text.size()) > 0);
  ::pause();
}

TEST_CASE("what an owner left whose janitor was killed too is swept by the next one") {
  const auto place = find_cgroup_place("memory");
  if (!place) {
    CHECK(leftovers().empty());
    return;
  }
  // A dead owner's group: the process is ended, so its number with that start time is nobody's.
  auto owner = spawn({.argv = {"/bin/true"}});
  REQUIRE(owner);
  const std::string dead_pid = std::to_string(owner->pid());
  owner->wait();
  struct stat pid_namespace {};
  REQUIRE(::stat("/proc/self/ns/pid", &pid_namespace) == 0);
  const std::string tail = "-1-" + std::to_string(pid_namespace.st_ino) + "-old";
  const std::string dead = place->directory + "/ccbox-" + dead_pid + tail;
  const std::string elsewhere = place->directory + "/ccbox-" + dead_pid + "-1-7-old";
  fs::create_directory(dead);
  fs::create_directory(elsewhere);
  auto inside = spawn({.argv = {"/bin/sleep", "100"}, .cgroup_directories = {dead}});
  REQUIRE(inside);
  REQUIRE(limit_group::create(memory_of(64 << 20), "sweeper", here));
  CHECK(test::wait_until_ended(inside->pidfd()));
  inside->wait();
  CHECK(test::wait_until_removed(dead));
  CHECK(fs::exists(elsewhere));  // another pid namespace's: not ours to judge
  fs::remove(elsewhere);
}

TEST_CASE("a janitor that was killed is replaced, and knows what exists") {
  if (!has_cgroups()) {
    CHECK(leftovers().empty());
    return;
  }
  const auto janitors = [] {
    std::vector<pid_t> out;
    for (pid_t pid : test::children_of(::getpid())) {
      std::ifstream in("/proc/" + std::to_string(pid) + "/cmdline");
      std::string line;
      std::getline(in, line);  // words end in NUL
      if (line.find("--janitor") != std::string::npos) out.push_back(pid);
    }
    return out;
  };
  auto first = limit_group::create(memory_of(64 << 20), "first", here);
  REQUIRE(first);
  REQUIRE(janitors().size() == 1);
  const pid_t old = janitors()[0];
  // It holds its socket and nothing else of ours.
  std::vector<std::string> held;
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(old) + "/fd")) {
    held.push_back(fs::read_symlink(entry.path()));
  }
  std::sort(held.begin(), held.end());
  REQUIRE(held.size() == 3);
  CHECK(held[0] == "/dev/null");
  CHECK(held[1] == "/dev/null");
  CHECK(held[2].starts_with("socket:"));
  const unique_fd watch = test::open_process(old);
  ::kill(old, SIGKILL);
  REQUIRE(test::wait_until_ended(watch.get()));
  auto second = limit_group::create(memory_of(64 << 20), "second", here);
  REQUIRE(second);
  REQUIRE(janitors().size() == 1);
  CHECK(janitors()[0] != old);
}

TEST_CASE("whichever call fails, a group is an error and leaves no directory, descriptor or process") {
  resource_limits l = memory_of(64 << 20);
  l.processes = 10;
  l.file_size_bytes = 1 << 20;
  { REQUIRE(limit_group::create(l, "warm-up", here)); }  // the janitor stays
  const auto before = test::take_footprint();
  // How many calls there are depends on what others have in the same parent group.
  bool reached = true;
  int n = 0;
  while (reached) {
    ++n;
    CAPTURE(n);
    {
      test::failing_call fail(n);
      // Some calls only look around, for the sweep or for a place: failing them costs the group or nothing.
      const auto group = limit_group::create(l, "fail", here);
      reached = fail.reached();
      if (group && has_cgroups()) {
        CHECK(group->cgroup_directories().size() + group->rlimits().size() == 3);
      }
    }
    CHECK(test::take_footprint() == before);
    for (const std::string& directory : leftovers())
      CHECK(test::wait_until_removed(directory));
  }
  CHECK(n > 3);
}
