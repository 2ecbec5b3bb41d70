// Where groups are made on a cgroup v2 host, on a tree of plain files that stands for one: the hook answers
// the calls that would meet the real thing. What real groups do is limits_test's.
#include "cgroup.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "limits.hpp"
#include "os.hpp"
#include "support/result_printing.hpp"
#include "support/temporary_directory.hpp"

using namespace ccbox;
namespace fs = std::filesystem;

namespace {

const std::string init_path = CCBOX_TEST_BINARY_DIR "/bin/ccbox-init";

struct fake_host {
  fake_host(const std::string& proc_cgroup, const std::string& mountinfo) {
    current = this;
    dir.write("proc_cgroup", proc_cgroup);
    dir.write("mountinfo", mountinfo);
    os::test_hook = answer;
  }
  ~fake_host() { os::test_hook = nullptr; }

  static bool answer(long number, const long (&arguments)[6], long& result) {
    const auto path = [&] { return std::string(reinterpret_cast<const char*>(arguments[1])); };
    if (number == SYS_openat && path() == "/proc/self/cgroup") return open_instead("proc_cgroup", result);
    if (number == SYS_openat && path() == "/proc/self/mountinfo") return open_instead("mountinfo", result);
    if (number == SYS_mkdirat) {
      fs::create_directory(path());
      for (const char* file : {"memory.max", "memory.swap.max", "memory.oom.group", "memory.events",
                               "pids.max", "cpu.max", "cgroup.procs"}) {
        std::ofstream(path() + "/" + file);
      }
      result = 0;
      return true;
    }
    if (number == SYS_unlinkat) {
      fs::remove_all(path());
      result = 0;
      return true;
    }
    return false;
  }
  static bool open_instead(const char* name, long& result) {
    result = ::open((current->dir / name).c_str(), O_RDONLY | O_CLOEXEC);
    return true;
  }

  // A group with the files that matter for finding a place.
  void group(const std::string& path, const std::string& controllers,
             const std::string& subtree_control) const {
    dir.write(path + "/cgroup.controllers", controllers + "\n");
    dir.write(path + "/cgroup.subtree_control", subtree_control + "\n");
    dir.write(path + "/cgroup.procs", "");
    dir.write(path + "/cgroup.type", "domain\n");
    for (const char* controller : {"memory", "pids", "cpu"}) {
      dir.write(path + "/" + controller + ".max", "max\n");
    }
  }

  static fake_host* current;
  test::temporary_directory dir;
};
fake_host* fake_host::current = nullptr;

std::string v2_mount(const std::string& where, const std::string& root = "/") {
  return "25 1 0:22 / /proc rw - proc proc rw\n31 23 0:26 " + root + " " + where +
         " rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
}

std::string read(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A desktop: our process is in a scope of a slice that belongs to the user.
struct desktop : fake_host {
  desktop() : fake_host("0::/user.slice/app.slice/term.scope\n", "") {
    dir.write("mountinfo", v2_mount(dir / "cg"));
    group("cg", "cpu memory pids", "cpu memory pids");
    fs::remove(dir / "cg/cgroup.type");
    group("cg/user.slice", "cpu memory pids", "memory pids");
    group("cg/user.slice/app.slice", "memory pids", "memory pids");
    group("cg/user.slice/app.slice/term.scope", "memory pids", "");
  }
  std::string slice() const { return dir / "cg/user.slice/app.slice"; }
};

}  // namespace

TEST_CASE("cgroup v2: a group with processes has none below it, so the place is beside ours") {
  desktop host;
  const auto place = find_cgroup_place("memory");
  REQUIRE(place);
  CHECK(*place == cgroup_place{2, host.slice()});
}

TEST_CASE("cgroup v2: a controller that the parent does not hand down is unavailable") {
  desktop host;
  const auto place = find_cgroup_place("cpu");
  REQUIRE_FALSE(place);
  CHECK(place.error().code == error_code::unavailable);
  CHECK(place.error().what.find("app.slice' gives this user no cpu controller") != std::string::npos);
  CHECK_FALSE(place.error().hint.empty());
}

TEST_CASE("cgroup v2: a limit of our own group is never escaped by a group beside it") {
  desktop host;
  host.dir.write("cg/user.slice/app.slice/term.scope/memory.max", "1073741824\n");
  const auto place = find_cgroup_place("memory");
  REQUIRE_FALSE(place);
  CHECK(place.error().what.find("would escape that") != std::string::npos);
  CHECK(find_cgroup_place("pids"));
}

TEST_CASE("cgroup v2: in the hierarchy's root groups go directly below") {
  desktop host;
  host.dir.write("proc_cgroup", "0::/\n");
  const auto place = find_cgroup_place("cpu");
  REQUIRE(place);
  CHECK(*place == cgroup_place{2, host.dir / "cg"});
  host.group("cg", "cpu memory pids", "memory pids");
  fs::remove(host.dir / "cg/cgroup.type");
  CHECK(find_cgroup_place("cpu").error().code == error_code::unavailable);  // nobody hands it down
}

TEST_CASE("cgroup v2: the top group of a container is no root") {
  desktop host;
  host.dir.write("proc_cgroup", "0::/\n");
  host.dir.write("cg/cgroup.type", "domain\n");
  CHECK(find_cgroup_place("memory").error().code == error_code::unavailable);
}

TEST_CASE("a group that is mounted below its hierarchy's root is found by the rest of its path") {
  desktop host;
  host.dir.write("proc_cgroup", "0::/docker/abc/user.slice/app.slice/term.scope\n");
  host.dir.write("mountinfo", v2_mount(host.dir / "cg", "/docker/abc"));
  const auto place = find_cgroup_place("memory");
  REQUIRE(place);
  CHECK(place->directory == host.slice());
  host.dir.write("mountinfo", v2_mount(host.dir / "cg", "/docker/ab"));
  CHECK_FALSE(find_cgroup_place("memory"));
}

TEST_CASE("a group outside what is mounted here is unavailable") {
  desktop host;
  host.dir.write("proc_cgroup", "0::/../../elsewhere\n");
  CHECK(find_cgroup_place("memory").error().what ==
        "no cgroup hierarchy with the memory controller is mounted");
}

TEST_CASE("mount points with blanks in them are found") {
  desktop host;
  fs::rename(host.dir / "cg", host.dir / "c g");
  host.dir.write("mountinfo", v2_mount(host.dir / "c\\040g"));
  const auto place = find_cgroup_place("memory");
  REQUIRE(place);
  CHECK(place->directory == host.dir / "c g/user.slice/app.slice");
}

TEST_CASE("on a hybrid host each controller is looked for where it is") {
  desktop host;
  fs::create_directories(host.dir / "pids/job");
  host.dir.write("proc_cgroup", "8:pids:/job\n4:cpu,cpuacct:/\n0::/user.slice/app.slice/term.scope\n");
  host.dir.write("mountinfo", "39 31 0:36 / " + (host.dir / "pids") + " rw - cgroup cgroup rw,pids\n" +
                                  v2_mount(host.dir / "cg"));
  CHECK(find_cgroup_place("pids").value() == cgroup_place{1, host.dir / "pids/job"});
  CHECK(find_cgroup_place("memory").value() == cgroup_place{2, host.slice()});
}

TEST_CASE("cgroup v2: the limits of a session share one group, and it goes with them") {
  desktop host;
  host.dir.write("cg/user.slice/app.slice/cgroup.subtree_control", "cpu memory pids\n");
  resource_limits limits;
  limits.memory_bytes = 64 << 20;
  limits.processes = 10;
  limits.cpus = 1.5;
  std::string directory;
  {
    const auto group = limit_group::create(limits, "s1", {init_path, true});
    REQUIRE(group);
    REQUIRE(group->cgroup_directories().size() == 1);
    directory = group->cgroup_directories()[0];
    CHECK(fs::path(directory).parent_path() == host.slice());
    CHECK(fs::path(directory).filename().string().starts_with("ccbox-" + std::to_string(::getpid()) + "-"));
    CHECK(directory.ends_with("-s1"));
    CHECK(read(directory + "/memory.max") == "67108864");
    CHECK(read(directory + "/memory.swap.max") == "0");
    CHECK(read(directory + "/memory.oom.group") == "1");
    CHECK(read(directory + "/pids.max") == "12");
    CHECK(read(directory + "/cpu.max") == "150000 100000");
    CHECK(group->rlimits().empty());
    CHECK(group->details()[0] == std::pair<std::string, std::string>("memory", "cgroup v2, of the session"));

    CHECK_FALSE(group->out_of_memory());
    std::ofstream(directory + "/memory.events") << "low 0\nhigh 0\nmax 5\noom 1\noom_kill 0\n";
    CHECK_FALSE(group->out_of_memory());
    std::ofstream(directory + "/memory.events") << "low 0\nhigh 0\nmax 5\noom 1\noom_kill 2\n";
    CHECK(group->out_of_memory());
  }
  CHECK_FALSE(fs::exists(directory));
}

TEST_CASE("a group that cannot be limited as asked is an error, and goes") {
  desktop host;
  resource_limits limits;
  limits.cpus = 1;
  CHECK(limit_group::create(limits, "s1", {init_path, true}).error().code == error_code::unenforceable);
  CHECK(check_limits(limits, true).error().what.starts_with("limit cpus cannot be enforced here: "));
  for (const auto& entry : fs::directory_iterator(host.slice())) {
    CHECK_FALSE(entry.path().filename().string().starts_with("ccbox-"));
  }
}
