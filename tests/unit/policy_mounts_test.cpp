#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "support/policy_bench.hpp"

using namespace ccbox;
using namespace ccbox::test;
namespace fs = std::filesystem;

namespace {

std::vector<rule> mounts_of(const policy& p) {
  std::vector<rule> out;
  for (const auto& r : p.rules)
    if (r.kind == rule_kind::mount && r.origin != rule_origin::system) out.push_back(r);
  return out;
}

const rule& mount_at(const policy& p, std::string_view guest) {
  const auto found = std::find_if(p.rules.begin(), p.rules.end(), [&](const rule& r) {
    return r.kind == rule_kind::mount && r.guest_path == guest;
  });
  REQUIRE(found != p.rules.end());
  return *found;
}

bool mentions(const error& e, std::string_view text) {
  return e.what.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("chat keeps mounts writable, the other modes make them read-only") {
  policy_bench bench;
  CHECK_FALSE(mount_at(bench.compile(), bench.work).read_only);
  for (const auto mode : {sandbox_mode::review, sandbox_mode::plan, sandbox_mode::orchestrate}) {
    bench.spec.mode = mode;
    const auto mount = mount_at(bench.compile(), bench.work);
    CHECK(mount.read_only);
    CHECK(mount.origin == rule_origin::mode);
    CHECK(mount.reason.find(to_string(mode)) != std::string::npos);
  }
}

TEST_CASE("runner state is writable in every mode") {
  policy_bench bench;
  bench.dir.write("state/x", "x");
  bench.spec.runner_state_dirs = {bench.dir / "state"};
  for (const auto mode :
       {sandbox_mode::chat, sandbox_mode::review, sandbox_mode::plan, sandbox_mode::orchestrate}) {
    bench.spec.mode = mode;
    const auto mount = mount_at(bench.compile(), bench.dir / "state");
    CHECK_FALSE(mount.read_only);
    CHECK(mount.origin == rule_origin::runner_state);
  }
  bench.mount(bench.dir / "state", true);
  CHECK_FALSE(mount_at(bench.compile(), bench.dir / "state").read_only);
}

TEST_CASE("runner state inside a read-only mount is writable there") {
  policy_bench bench;
  bench.write("state/x");
  bench.spec.mode = sandbox_mode::review;
  bench.spec.runner_state_dirs = {bench.work + "/state"};
  const auto p = bench.compile();
  CHECK(mount_at(p, bench.work).read_only);
  CHECK_FALSE(mount_at(p, bench.work + "/state").read_only);
  CHECK(check_path(p, bench.work + "/state/new").creatable);
  CHECK_FALSE(check_path(p, bench.work + "/new").creatable);
}

TEST_CASE("a mount's source that is missing is an error that names the key and what to do") {
  policy_bench bench;
  bench.mount(bench.work + "/build");
  auto e = bench.refusal();
  CHECK(e.code == error_code::not_found);
  CHECK(mentions(e, "bindMounts[1]: '" + bench.work + "/build' does not exist"));
  CHECK_FALSE(e.hint.empty());
  bench.spec.bind_mounts.pop_back();
  bench.spec.runner_state_dirs = {bench.dir / "none"};
  e = bench.refusal();
  CHECK(e.code == error_code::not_found);
  CHECK(mentions(e, "runnerStateDirs[0]"));
}

TEST_CASE("a mount's source that is no file and no directory is refused") {
  policy_bench bench;
  const std::string fifo = bench.dir / "fifo", socket_path = bench.dir / "sock";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const int s = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(::bind(s, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  for (const auto& path : {fifo, socket_path}) {
    bench.spec.bind_mounts = {{path, "", false}};
    CHECK(mentions(bench.refusal(), "neither a regular file nor a directory"));
  }
  ::close(s);
}

TEST_CASE("a file is no directory for a source that ends in a slash") {
  policy_bench bench;
  const std::string file = bench.write("file");
  for (const std::string end : {"/", "//", "/."}) {
    bench.spec.bind_mounts = {{file + end, file, false}};
    CHECK_MESSAGE(mentions(bench.refusal(), "is a file"), end);
  }
  bench.spec.bind_mounts = {{bench.work + "/", bench.work, false}};
  CHECK(bench.try_compile().has_value());
}

TEST_CASE("a file is no directory for runner state") {
  policy_bench bench;
  bench.spec.runner_state_dirs = {bench.write("file")};
  CHECK(mentions(bench.refusal(), "is not a directory"));
}

TEST_CASE("nothing leads into or through /proc, /dev or /sys") {
  policy_bench bench;
  fs::create_symlink("/proc/self/cwd", bench.dir / "cwd");
  fs::create_symlink("/dev/fd", bench.dir / "fd");
  for (const std::string path :
       {"/proc", "/proc/self/cwd", "/proc/self/root/etc", "/proc/self/fd/0", "/dev", "/dev/fd", "/dev/null",
        "/dev/shm", "/sys", "/sys/kernel", "//proc//", "/etc/../proc"}) {
    bench.spec.bind_mounts = {{path, "", false}};
    CHECK_MESSAGE(mentions(bench.refusal(), "/proc, /dev or /sys"), path);
  }
  for (const std::string& path : {bench.dir / "cwd", bench.dir / "fd", bench.dir / "cwd/x"}) {
    bench.spec.bind_mounts = {{path, "", false}};
    CHECK_MESSAGE(mentions(bench.refusal(), "/proc, /dev or /sys"), path);
  }
}

TEST_CASE("relative paths and NUL bytes are refused") {
  policy_bench bench;
  for (const std::string& path : {std::string("relative"), std::string(""), std::string("/a\0b", 4)}) {
    bench.spec.bind_mounts = {{path, "", false}};
    CHECK(bench.refusal().code == error_code::invalid_argument);
  }
}

TEST_CASE("a loop of links is refused") {
  policy_bench bench;
  fs::create_symlink("loop", bench.dir / "loop");
  bench.mount(bench.dir / "loop");
  CHECK(mentions(bench.refusal(), "loop of symbolic links"));
}

TEST_CASE("the source is resolved, the place stays as it was asked for") {
  policy_bench bench;
  bench.dir.write("far/real/x", "x");
  fs::create_directory_symlink(bench.dir / "far/real", bench.dir / "link");
  bench.spec.bind_mounts = {{bench.dir / "link", "", false}};
  const auto p = bench.compile();
  CHECK(mount_at(p, bench.dir / "link").path == bench.dir / "far/real");
  CHECK(p.workdir == bench.dir / "link");
}

TEST_CASE("a source named through a link that another mount shows is mounted where the link leads") {
  policy_bench bench;
  bench.dir.write("far/x", "x");
  fs::create_directory_symlink(bench.dir / "far", bench.work + "/link");
  bench.mount(bench.work + "/link");
  const auto p = bench.compile();
  CHECK(mount_at(p, bench.dir / "far").path == bench.dir / "far");
  CHECK(check_path(p, bench.work + "/link/x").writable);
}

TEST_CASE("a place inside that the enclosure makes itself, or that hides the system, is refused") {
  policy_bench bench;
  for (const std::string guest :
       {"/", "/proc", "/proc/x", "/dev", "/dev/shm", "/sys/fs", "/run", "/run/ccbox", "/run/ccbox/home",
        "/usr", "/usr/local", "/etc", "/etc/passwd", "/bin", "/lib/x", "/a/../b"}) {
    bench.spec.bind_mounts = {{bench.work, guest, false}};
    const auto e = bench.refusal();
    CHECK_MESSAGE(mentions(e, "bindMounts[0].guestPath"), guest);
    CHECK_MESSAGE(!e.hint.empty(), guest);
  }
  for (const std::string guest : {"/workspace", "/tmp/x", "/run/user", "/usrlocal", "/mnt/a b/[c]"}) {
    bench.spec.bind_mounts = {{bench.work, guest, false}};
    CHECK_MESSAGE(bench.try_compile().has_value(), guest);
  }
}

TEST_CASE("a place inside whose names or whose whole is too long is refused") {
  policy_bench bench;
  const std::string longest(255, 'x');
  std::string deep;
  while (deep.size() + 256 <= 4087)
    deep += "/" + longest;
  deep += "/" + std::string(4087 - deep.size() - 1, 'x');
  for (const std::string& fits : {"/" + longest, "/a/" + longest + "/b", deep}) {
    bench.spec.bind_mounts = {{bench.work, fits, false}};
    CHECK(bench.try_compile().has_value());
  }
  for (const std::string& too_long : {"/x" + longest, "/a/x" + longest + "/b", deep + "x"}) {
    bench.spec.bind_mounts = {{bench.work, too_long, false}};
    CHECK(mentions(bench.refusal(), "is too long"));
  }
}

TEST_CASE("the host's root can be shown at the root only") {
  policy_bench bench;
  bench.spec.bind_mounts = {{"/", "/mnt", true}};
  CHECK(mentions(bench.refusal(), "the host's root"));
}

TEST_CASE("part of the system can be mounted where it is, not made writable as a whole") {
  policy_bench bench;
  bench.spec.bind_mounts = {{"/usr", "", false}};
  const auto p = bench.compile();
  CHECK(mount_at(p, "/usr").read_only);
  REQUIRE(p.warnings.size() == 1);
  CHECK(p.warnings[0].find("'/usr' stays read-only") != std::string::npos);
  bench.spec.bind_mounts = {{"/usr/share", "", true}};
  CHECK(mount_at(bench.compile(), "/usr/share").read_only);
}

TEST_CASE("two spellings of one place are one mount, and read-only wins") {
  policy_bench bench;
  bench.spec.bind_mounts = {
      {bench.work, "", false}, {bench.work + "//./", "", true}, {bench.work + "/", "", false}};
  const auto p = bench.compile();
  REQUIRE(mounts_of(p).size() == 1);
  CHECK(mounts_of(p)[0].read_only);
}

TEST_CASE("a second name for a read-only tree is read-only too") {
  policy_bench bench;
  bench.spec.bind_mounts = {{bench.work, "", true}, {bench.work, "/alias", false}};
  const auto p = bench.compile();
  CHECK(mount_at(p, "/alias").read_only);
  REQUIRE(p.warnings.size() == 1);
  CHECK(p.warnings[0].find("bindMounts[1]") == 0);
}

TEST_CASE("one place cannot show two things") {
  policy_bench bench;
  bench.dir.write("other/x", "x");
  bench.spec.bind_mounts = {{bench.work, "/w", false}, {bench.dir / "other", "/w", false}};
  const auto e = bench.refusal();
  CHECK(e.code == error_code::conflict);
  CHECK(mentions(e, "bindMounts[1]"));
  CHECK(mentions(e, "bindMounts[0]"));
}

TEST_CASE("the most specific mount has the last word, whatever the order of listing") {
  policy_bench bench;
  bench.write("a/b/x");
  const std::vector<sandbox_bind_mount> listed = {
      {bench.work, "", false}, {bench.work + "/a", "", true}, {bench.work + "/a/b", "", false}};
  std::vector<std::size_t> order = {0, 1, 2};
  do {
    bench.spec.bind_mounts = {listed[order[0]], listed[order[1]], listed[order[2]]};
    const auto p = bench.compile();
    std::vector<std::string> places;
    for (const auto& m : mounts_of(p))
      places.push_back(m.guest_path);
    CHECK(places == std::vector<std::string>{bench.work, bench.work + "/a", bench.work + "/a/b"});
    CHECK(check_path(p, bench.work + "/x").creatable);
    CHECK_FALSE(check_path(p, bench.work + "/a/x").creatable);
    CHECK(check_path(p, bench.work + "/a/b/x").creatable);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("a place inside another mount must be there, as what is mounted, without a link") {
  policy_bench bench;
  bench.dir.write("other/x", "x");
  bench.write("file");
  bench.write("real/x");
  fs::create_directory_symlink("real", bench.work + "/link");
  const auto at = [&](const std::string& guest) {
    bench.spec.bind_mounts = {{bench.work, "", false}, {bench.dir / "other", guest, false}};
    return bench.try_compile();
  };
  CHECK(at(bench.work + "/real").has_value());
  auto refused = at(bench.work + "/none");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == error_code::not_found);
  CHECK(refused.error().hint.find("ccbox makes nothing in your tree") != std::string::npos);
  CHECK_FALSE(fs::exists(bench.work + "/none"));
  for (const auto place : {"/file", "/link", "/file/x"})
    CHECK_FALSE(at(bench.work + place).has_value());
}

TEST_CASE("odd names are taken as they are") {
  policy_bench bench;
  for (const std::string name :
       {"[WIP] project", "a[b]", "st*r?", "new\nline", "back\\slash", "quo\"te'", "\xff\xfe"}) {
    fs::create_directories(bench.work + "/" + name);
    bench.spec.bind_mounts = {{bench.work + "/" + name, "", false}};
    const auto p = bench.compile();
    CHECK(p.workdir == bench.work + "/" + name);
    CHECK(check_path(p, bench.work + "/" + name + "/x").creatable);
    CHECK_FALSE(check_path(p, bench.work + "/" + name + "/.env").creatable);
    CHECK(check_path(p, bench.work + "/other")
              .deciding_rules.empty());  // memory of the session, not the host's
  }
}

TEST_CASE("the system view is read-only, and its links are links") {
  policy_bench bench;
  const auto p = bench.compile();
  CHECK(mount_at(p, "/usr").read_only);
  CHECK(mount_at(p, "/usr").origin == rule_origin::system);
  CHECK(mount_at(p, "/etc").read_only);
  if (fs::is_symlink("/bin"))
    CHECK(mount_at(p, "/bin").type == path_type::symlink);
  else
    CHECK(mount_at(p, "/bin").type == path_type::directory);
  CHECK(std::none_of(p.rules.begin(), p.rules.end(), [](const rule& r) {
    return r.kind == rule_kind::mount && r.type == path_type::missing;
  }));
}

TEST_CASE("a view of the host at other places is refused where there is one view only") {
  policy_bench bench;
  bench.spec.bind_mounts = {{bench.work, "/elsewhere", false}};
  bench.spec.backend = "none";
  CHECK(mentions(bench.refusal(), "guestPath"));
  bench.spec.backend.reset();
  bench.host.platform = host_platform::macos;
  CHECK(mentions(bench.refusal(), "guestPath"));
}

TEST_CASE("the work directory is the first directory that is mounted, unless it is named") {
  policy_bench bench;
  bench.write("sub/x");
  bench.spec.bind_mounts.insert(bench.spec.bind_mounts.begin(), {bench.write("file"), "", false});
  CHECK(bench.compile().workdir == bench.work);
  bench.spec.guest_workdir = bench.work + "/sub/";
  CHECK(bench.compile().workdir == bench.work + "/sub");
  bench.spec.bind_mounts.clear();
  bench.spec.guest_workdir.reset();
  CHECK(bench.compile().workdir == bench.home);
  bench.spec.bind_mounts = {{bench.work, "/w", false}};
  CHECK(bench.compile().workdir == "/w");
}

TEST_CASE("a work directory that no mount shows, or that is none, is refused") {
  policy_bench bench;
  bench.write("file");
  fs::create_directory_symlink(bench.dir.path(), bench.work + "/out");
  for (const std::string& dir :
       {bench.dir.path(), bench.work + "/none", bench.work + "/file", bench.work + "/..", bench.work + "/out",
        std::string("/proc"), std::string("/nowhere")}) {
    bench.spec.guest_workdir = dir;
    CHECK_MESSAGE(mentions(bench.refusal(), "guestWorkdir"), dir);
  }
  bench.mount(bench.home);
  bench.spec.guest_workdir = bench.home + "/.ssh";
  CHECK(mentions(bench.refusal(), "cannot be read"));
}

TEST_CASE("home and temporary directory are the session's own, out of the way of mounts") {
  policy_bench bench;
  auto p = bench.compile();
  CHECK(p.home == bench.home);
  CHECK(p.tmpdir == "/tmp");
  bench.mount(bench.home);
  p = bench.compile();
  CHECK(p.home == "/run/ccbox/home");
  bench.spec.bind_mounts = {{"/", "", true}};
  p = bench.compile();
  CHECK(p.home == "/run/ccbox/home");
  CHECK(p.tmpdir == "/run/ccbox/tmp");
  bench.spec.bind_mounts = {{bench.work, "/w", false}};
  for (const std::string home :
       {"", "/", "relative", "/tmp", "/usr/sbin", "/proc/self", "/dev", "/run/user/1000"}) {
    bench.host.home = home;
    CHECK_MESSAGE(bench.compile().home == "/run/ccbox/home", home);
  }
}

TEST_CASE("ten thousand mounts compile in a moment or are refused by number") {
  policy_bench bench;
  bench.spec.bind_mounts.clear();
  for (int i = 0; i < 10'000; ++i)
    bench.mount(bench.work, true, "/m/" + std::to_string(i));
  CHECK(mounts_of(bench.compile()).size() == 10'000);
  for (auto& m : bench.spec.bind_mounts)
    m.read_only = false;
  const auto e = bench.refusal();
  CHECK(e.code == error_code::too_large);
  CHECK(mentions(e, "10000 writable mounts"));
}
