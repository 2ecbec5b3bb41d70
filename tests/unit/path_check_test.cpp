#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "glob.hpp"
#include "support/policy_bench.hpp"

using namespace ccbox;
using namespace ccbox::test;
namespace fs = std::filesystem;

namespace {

const rule& deciding(const policy& p, const path_answer& answer) {
  REQUIRE_FALSE(answer.deciding_rules.empty());
  return p.rules.at(answer.deciding_rules.back());
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// What the rules mean, said as plainly as can be: for trees without links, mounts at their own places.
struct reference {
  struct mount {
    std::string path;
    bool read_only;
  };
  std::vector<mount> mounts;
  std::vector<std::string> read_denied, write_denied;
  std::vector<std::string> names;  // lower-case endings of names: ".key", ".env"

  static bool below(const std::string& path, const std::string& directory) {
    return path == directory || path.compare(0, directory.size() + 1, directory + "/") == 0;
  }
  static bool any_above(const std::string& path, const std::vector<std::string>& list) {
    return std::any_of(list.begin(), list.end(), [&](const std::string& d) { return below(path, d); });
  }
  const mount* over(const std::string& path) const {
    const mount* found = nullptr;
    for (const auto& m : mounts)
      if (below(path, m.path) && (!found || m.path.size() > found->path.size())) found = &m;
    return found;
  }
  bool named(const std::string& path, const std::string& root) const {
    for (const auto& part : fs::path(path.substr(root.size())))
      for (const auto& name : names) {
        std::string lower = part.string();
        std::transform(lower.begin(), lower.end(), lower.begin(),
                       [](unsigned char c) { return std::tolower(c); });
        if (lower.size() >= name.size() && lower.compare(lower.size() - name.size(), name.size(), name) == 0)
          return true;
      }
    return false;
  }
  bool visible(const std::string& path) const { return over(path) != nullptr; }
  bool readable(const std::string& path) const { return visible(path) && !any_above(path, read_denied); }
  bool writable(const std::string& path) const {
    const auto* m = over(path);
    if (!m || m->read_only || any_above(path, read_denied) || any_above(path, write_denied)) return false;
    // A name rule counts from every writable mount that the path lies in.
    for (const auto& root : mounts)
      if (!root.read_only && below(path, root.path) && named(path, root.path)) return false;
    return true;
  }
};

}  // namespace

TEST_CASE("a path that no mount shows is not visible") {
  policy_bench bench;
  bench.host.home = "/nonexistent";
  const auto answer = check_path(bench.compile(), "/somewhere/else");
  CHECK_FALSE(answer.visible);
  CHECK_FALSE(answer.readable);
  CHECK_FALSE(answer.creatable);
  CHECK(answer.deciding_rules.empty());
  CHECK(answer.explanation == "'/somewhere/else' is not visible: no mount shows it");
}

TEST_CASE("a name or path that is longer than the kernel takes is none") {
  policy_bench bench;
  const auto p = bench.compile();
  const auto check_none = [&](const std::string& path, std::string_view why) {
    const auto answer = check_path(p, path);
    CHECK_FALSE(answer.visible);
    CHECK_FALSE(answer.creatable);
    CHECK(answer.explanation == "no system call takes it: it " + std::string(why));
  };
  CHECK(check_path(p, bench.work + "/" + std::string(255, 'n')).creatable);
  check_none(bench.work + "/" + std::string(256, 'n'),
             "has a name of 256 bytes, and the kernel takes 255 at most");
  check_none(std::string(6000, 'n') + "/x", "has a name of 6000 bytes, and the kernel takes 255 at most");
  std::string deep = bench.work;
  while (deep.size() < 4095)
    deep += "/" + std::string(std::min<std::size_t>(200, 4095 - deep.size() - 1), 'n');
  CHECK(check_path(p, deep).creatable);
  check_none(deep + "n", "is a path of 4096 bytes, and the kernel takes 4095 at most");
  bench.spec.backend = "none";
  const auto unconfined = check_path(bench.compile(), std::string(256, 'n'));
  CHECK_FALSE(unconfined.creatable);
}

TEST_CASE("each answer names the rule that decides it") {
  policy_bench bench;
  bench.write("p/x");
  bench.write("x.key");
  bench.spec.bind_mounts = {{bench.home, "", false}};
  bench.spec.protected_paths = {bench.work + "/p"};
  const auto p = bench.compile();

  auto answer = check_path(p, bench.work + "/new");
  CHECK(deciding(p, answer).kind == rule_kind::mount);
  CHECK(contains(answer.explanation, "can be read and written, but nothing is there: bindMounts[0]"));

  answer = check_path(p, bench.work + "/p/x");
  CHECK(deciding(p, answer).origin == rule_origin::protected_path);
  CHECK(contains(answer.explanation, "can be read, not written: protectedPaths[0]"));

  answer = check_path(p, bench.home + "/.ssh/id");
  CHECK(deciding(p, answer).kind == rule_kind::read_deny);
  CHECK(contains(answer.explanation, "cannot be read or written: secret: SSH keys"));

  answer = check_path(p, bench.work + "/new.pem");
  CHECK(deciding(p, answer).kind == rule_kind::name_deny);
  CHECK(contains(answer.explanation, "the rule is '*.pem'"));
  CHECK(contains(answer.explanation, "policy.yaml:"));

  answer = check_path(p, bench.work + "/x.key");
  CHECK(deciding(p, answer).origin == rule_origin::existing_match);

  answer = check_path(p, "/usr/bin/env");
  CHECK(deciding(p, answer).origin == rule_origin::system);
  CHECK(answer.readable);
  CHECK_FALSE(answer.writable);
}

TEST_CASE("a path is asked for relative to the work directory") {
  policy_bench bench;
  const auto p = bench.compile();
  CHECK(check_path(p, "sub/.env").explanation.find("'" + bench.work + "/sub/.env'") == 0);
  CHECK_FALSE(check_path(p, "./sub/../.env").creatable);
  CHECK(check_path(p, "sub/file").creatable);
}

TEST_CASE("links inside are followed as they are inside") {
  policy_bench bench;
  bench.write("sub/.env");
  fs::create_symlink("sub/.env", bench.work + "/lnk");
  fs::create_symlink(".env", bench.work + "/dangling");
  fs::create_symlink("/etc/hostname", bench.work + "/out");
  fs::create_symlink(bench.dir.path(), bench.work + "/invisible");
  fs::create_symlink("loop", bench.work + "/loop");
  bench.host.home = "/nonexistent";
  const auto p = bench.compile();
  CHECK_FALSE(check_path(p, bench.work + "/lnk").writable);
  CHECK(contains(check_path(p, bench.work + "/lnk").explanation, "leads there"));
  CHECK_FALSE(check_path(p, bench.work + "/dangling").creatable);
  CHECK(check_path(p, bench.work + "/out").readable);
  CHECK_FALSE(check_path(p, bench.work + "/out").writable);
  CHECK(contains(check_path(p, bench.work + "/loop").explanation, "loop"));
  CHECK_FALSE(check_path(p, bench.work + "/loop").readable);
}

TEST_CASE("links lead to what the enclosure shows, not to what the host has") {
  policy_bench bench;
  bench.dir.write("host-only/x", "x");
  fs::create_directory_symlink(bench.dir / "host-only", bench.work + "/link");
  bench.host.home = "/nonexistent";
  bench.spec.bind_mounts = {{bench.work, "/w", false}};
  bench.spec.guest_workdir = "/w";
  const auto p = bench.compile();
  CHECK(contains(check_path(p, "/w/link/x").explanation, bench.dir / "host-only/x"));
  // Below /tmp there is nothing but the session's own memory; elsewhere there is nothing at all.
  CHECK(check_path(p, "/w/link/x").deciding_rules.empty());
}

TEST_CASE("magic links into the process's own view are the real path") {
  policy_bench bench;
  const auto p = bench.compile();
  for (const std::string prefix : {"/proc/self/cwd", "/proc/thread-self/cwd", "/proc/1234/cwd"}) {
    CHECK_FALSE(check_path(p, prefix + "/.env").creatable);
    CHECK(check_path(p, prefix + "/fine").creatable);
  }
  CHECK_FALSE(check_path(p, "/proc/self/root" + bench.work + "/.env").creatable);
  CHECK(check_path(p, "/proc/self/root" + bench.work + "/fine").creatable);
  CHECK_FALSE(check_path(p, "/proc/sys/kernel/core_pattern").writable);
}

TEST_CASE("the session's own places are free to use") {
  policy_bench bench;
  bench.spec.bind_mounts = {{bench.work, "/w", false}};
  const auto p = bench.compile();
  for (const std::string& path :
       {p.home + "/x", p.tmpdir + "/x", std::string("/tmp/.env"), std::string("/var/tmp/x")}) {
    const auto answer = check_path(p, path);
    CHECK_MESSAGE(answer.creatable, path);
    CHECK(contains(answer.explanation, "memory of the session"));
  }
  CHECK_FALSE(check_path(p, "/dev/sda").writable);
  CHECK(contains(check_path(p, "/dev/null").explanation, "the enclosure's own"));
}

TEST_CASE("names are denied whatever their case, and below a denied directory") {
  policy_bench bench;
  const auto p = bench.compile();
  for (const std::string name :
       {".ENV", "X.KeY", ".Git/HOOKS/x", "dir.pem/inner/file", ".husky/_/x", ".g\xe2\x80\x8cit/config"})
    CHECK_MESSAGE(!check_path(p, bench.work + "/" + name).creatable, name);
}

TEST_CASE("an exempt name is exempt, what lies below a denied directory is not") {
  policy_bench bench;
  const auto p = bench.compile();
  CHECK(check_path(p, bench.work + "/.env.example").creatable);
  CHECK(check_path(p, bench.work + "/a/.ENV.Sample").creatable);
  CHECK_FALSE(check_path(p, bench.work + "/x.key/.env.example").creatable);
}

TEST_CASE("a rule that was given up decides nothing") {
  policy_bench bench;
  bench.spec.bind_mounts = {{bench.home, "", false}};
  bench.spec.without = {"fs_write_deny", "fs_name_deny", "fs_read_deny"};
  const auto p = bench.compile();
  CHECK(check_path(p, bench.home + "/.ssh/id").readable);
  CHECK(check_path(p, bench.work + "/.env").creatable);
}

TEST_CASE("what is no path is answered as such") {
  policy_bench bench;
  const auto p = bench.compile();
  for (const auto& path : {std::string(), std::string("/a\0b", 4)}) {
    const auto answer = check_path(p, path);
    CHECK_FALSE(answer.visible);
    CHECK(contains(answer.explanation, "is no path"));
  }
  CHECK_FALSE(contains(check_path(p, "/a\x1b[31m\n").explanation, "\x1b"));
}

TEST_CASE("verdicts agree with the plain meaning of the rules on random trees") {
  std::mt19937 random(7);
  const auto chance = [&](unsigned percent) { return random() % 100 < percent; };
  const std::vector<std::string> names = {"a", "b", "x.key", ".env", "C", "d.KEY"};
  std::map<std::string, std::size_t> seen;
  for (int round = 0; round < 40; ++round) {
    policy_bench bench;
    bench.host.home = "/nonexistent";
    bench.config.read_deny.clear();
    bench.config.write_deny.clear();
    bench.config.name_exempt.clear();
    bench.config.system_read.clear();
    bench.config.name_deny = {{"*.key", "keys", "t:1:1"}, {".env", "env", "t:1:2"}};
    reference expected;
    expected.names = {".key", ".env"};

    std::vector<std::string> directories = {bench.work}, paths = {bench.work, bench.dir.path(), "/nowhere"};
    for (int i = 0; i < 12; ++i) {
      const std::string parent = directories[random() % directories.size()];
      const std::string path = parent + "/" + names[random() % names.size()];
      if (fs::exists(path)) continue;
      if (chance(60)) {
        fs::create_directory(path);
        directories.push_back(path);
      } else {
        bench.dir.write(path.substr(bench.dir.path().size() + 1), "x");
      }
      paths.push_back(path);
    }
    for (const auto& directory : directories)
      for (const auto& name : names)
        paths.push_back(directory + "/" + name);

    const std::set<std::string> mounted = [&] {
      std::set<std::string> out = {directories[0]};
      for (const auto& d : directories)
        if (chance(25)) out.insert(d);
      return out;
    }();
    bench.spec.bind_mounts.clear();
    for (const auto& path : mounted) {
      const bool read_only = chance(40);
      bench.mount(path, read_only);
      expected.mounts.push_back({path, read_only});
    }
    for (const auto& path : paths) {
      if (path == bench.dir.path() || path == bench.work) continue;
      if (chance(8)) {
        bench.spec.protected_paths.push_back(path);
        expected.write_denied.push_back(path);
      } else if (chance(4) && !reference::any_above(path, expected.read_denied) &&
                 std::none_of(mounted.begin(), mounted.end(),
                              [&](const auto& m) { return reference::below(m, path); })) {
        bench.config.read_deny.push_back({path, "secret of the test", "t:2:1"});
        expected.read_denied.push_back(path);
      }
    }
    const auto p = bench.compile();
    for (const auto& path : paths) {
      const auto answer = check_path(p, path);
      CAPTURE(path);
      CAPTURE(answer.explanation);
      if (path.starts_with(bench.dir.path()) && !expected.visible(path)) continue;  // the session's own /tmp
      REQUIRE(answer.visible == expected.visible(path));
      REQUIRE(answer.readable == expected.readable(path));
      REQUIRE(answer.writable == expected.writable(path));
      if (!mounted.contains(path)) REQUIRE(answer.creatable == expected.writable(path));
      ++seen[answer.writable ? "writable" : answer.readable ? "readable" : "hidden"];
    }
  }
  for (const auto verdict : {"writable", "readable", "hidden"})
    CHECK(seen[verdict] > 20);
}
