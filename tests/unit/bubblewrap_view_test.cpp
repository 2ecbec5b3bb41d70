#include "plugins/bubblewrap/view.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>

#include "support/planned.hpp"

using namespace ccbox::bubblewrap;
using ccbox::plugin::failure;
using ccbox::test::mount_rule;
using ccbox::test::planned_rule;
using ccbox::test::read_deny_rule;
using ccbox::test::write_deny_rule;

namespace {

constexpr std::uint32_t directory = CCBOX_RULE_EXISTS | CCBOX_RULE_DIRECTORY;
constexpr std::uint32_t file = CCBOX_RULE_EXISTS;
constexpr std::uint32_t read_only = CCBOX_RULE_READ_ONLY;
constexpr std::uint32_t of_system = CCBOX_RULE_SYSTEM | CCBOX_RULE_READ_ONLY;

struct fake_tree : host_tree {
  std::map<std::string, node_type> nodes;
  node_type type(const std::string& path) const override {
    const auto found = nodes.find(path);
    return found == nodes.end() ? node_type::missing : found->second;
  }
  std::optional<std::string> link_text(const std::string& path) const override {
    if (path == "/bin") return "usr/bin";
    return std::nullopt;
  }
};

struct asked {
  std::vector<planned_rule> rules;
  std::uint64_t waived = 0;
  std::string home = "/home/u", tmpdir = "/tmp";
  std::uint32_t uid = 1000;
  fake_tree tree{};

  view make() const {
    std::vector<ccbox_rule> table;
    for (const auto& r : rules)
      table.push_back(
          {r.kind, r.flags, r.bit, ccbox::plugin::str(r.path), ccbox::plugin::str(r.guest_path), {}});
    ccbox_plan_request request{};
    request.size = sizeof request;
    request.rule_stride = sizeof(ccbox_rule);
    request.rules = table.data();
    request.rule_count = table.size();
    request.waived = waived;
    request.uid = uid;
    request.workdir = ccbox::plugin::str("/");
    request.home = ccbox::plugin::str(home);
    request.tmpdir = ccbox::plugin::str(tmpdir);
    const ccbox::plugin::plan_request parsed(&request);
    return view(parsed, tree);
  }
  failure refusal() const {
    try {
      make();
    } catch (const failure& f) {
      return f;
    }
    return {CCBOX_OK, "not refused"};
  }
};

const entry* step_at(const view& v, const std::string& guest) {
  const auto& steps = v.steps();
  const auto found =
      std::find_if(steps.begin(), steps.end(), [&](const entry& e) { return e.guest == guest; });
  return found == steps.end() ? nullptr : &*found;
}

std::string seen_as(const view& v, const std::string& guest) {
  const auto* e = step_at(v, guest);
  if (!e) return "nothing";
  switch (e->kind) {
    case entry_kind::bind:
      return std::string(e->read_only ? "read-only " : "writable ") + e->host;
    case entry_kind::symlink:
      return "link " + e->text;
    case entry_kind::tmpfs:
      return "tmpfs";
    case entry_kind::directory:
      return "directory";
    case entry_kind::proc:
      return "proc";
    case entry_kind::dev:
      return "dev";
    case entry_kind::mask:
      return e->is_directory ? "directory mask" : "file mask";
  }
  return {};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

}  // namespace

TEST_CASE("what /proc tells of the whole machine is masked for a root caller, where there is such a thing") {
  asked question{{mount_rule("/w", directory)}};
  question.tree.nodes = {{"/proc/kpageflags", node_type::other}, {"/proc/scsi", node_type::directory}};
  CHECK(seen_as(question.make(), "/proc/kpageflags") == "nothing");
  question.uid = 0;
  const auto v = question.make();
  CHECK(seen_as(v, "/proc/kpageflags") == "file mask");
  CHECK(seen_as(v, "/proc/scsi") == "directory mask");
  CHECK(seen_as(v, "/proc/kcore") == "nothing");
  const auto place = [&](const char* guest) { return step_at(v, guest) - v.steps().data(); };
  CHECK(place("/proc") < place("/proc/kpageflags"));
}

TEST_CASE("every mount comes after the one around it, whatever order the rules have") {
  std::vector<planned_rule> rules = {mount_rule("/w", directory),
                                     mount_rule("/w/a", directory | read_only),
                                     mount_rule("/w/a/b", directory),
                                     read_deny_rule("/w/a/b/s", directory),
                                     write_deny_rule("/w/x/y/z", directory),
                                     mount_rule("/w/x/y/z/r", directory)};
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::shuffle(rules.begin(), rules.end(), random);
    const auto v = asked{rules}.make();
    std::map<std::string, int> places;
    std::vector<std::string> before;
    for (const auto& step : v.steps()) {
      CHECK_MESSAGE(++places[step.guest] == 1, "two mounts at " << step.guest);
      for (const auto& earlier : before)
        CHECK_MESSAGE(
            !(step.guest != earlier && earlier.compare(0, step.guest.size() + 1, step.guest + "/") == 0),
            step.guest << " would hide " << earlier);
      before.push_back(step.guest);
    }
    CHECK(seen_as(v, "/w") == "writable /w");
    CHECK(seen_as(v, "/w/a") == "read-only /w/a");
    CHECK(seen_as(v, "/w/a/b") == "writable /w/a/b");
    CHECK(seen_as(v, "/w/a/b/s") == "directory mask");
    CHECK(seen_as(v, "/w/x") == "writable /w/x");
    CHECK(seen_as(v, "/w/x/y") == "writable /w/x/y");
    CHECK(seen_as(v, "/w/x/y/z") == "read-only /w/x/y/z");
    CHECK(seen_as(v, "/w/x/y/z/r") == "writable /w/x/y/z/r");
  }
}

TEST_CASE("a read deny inside a write deny stays a mask on top of it") {
  const auto v = asked{{mount_rule("/w", directory), write_deny_rule("/w/.claude", directory),
                        read_deny_rule("/w/.claude/key", file)}}
                     .make();
  CHECK(seen_as(v, "/w/.claude") == "read-only /w/.claude");
  CHECK(seen_as(v, "/w/.claude/key") == "file mask");
}

TEST_CASE("a path that is denied both ways, or in two spellings, has one mount") {
  const auto v =
      asked{{mount_rule("/w", directory), read_deny_rule("/w/.env", file), write_deny_rule("/w/.env", file),
             read_deny_rule("/w//./.env", file), write_deny_rule("/w/c/", directory),
             write_deny_rule("/w/./c", directory), write_deny_rule("/w/c/d", file)}}
          .make();
  CHECK(seen_as(v, "/w/.env") == "file mask");
  CHECK(seen_as(v, "/w/c") == "read-only /w/c");
  CHECK(seen_as(v, "/w/c/d") == "nothing");
  CHECK(v.layers().at(6) == "mount: read-only with '/w/c'");
}

TEST_CASE("denies that nothing writable or visible shows cost no mount and say so") {
  const auto v = asked{{mount_rule("/r", directory | read_only), write_deny_rule("/r/.git/hooks", directory),
                        read_deny_rule("/elsewhere/.ssh", directory), write_deny_rule("/elsewhere/x", file),
                        read_deny_rule("/r/gone", 0)}}
                     .make();
  CHECK(seen_as(v, "/r/.git/hooks") == "nothing");
  CHECK(seen_as(v, "/r/.git") == "nothing");
  CHECK(v.layers().at(1) == "mount: read-only with '/r'");
  CHECK(v.layers().at(2) == "mount: not visible");
  CHECK(v.layers().at(3) == "mount: not visible");
  CHECK(v.layers().at(4) == "mount: does not exist, nothing to hide");
  CHECK(v.unenforced() == 0);
}

TEST_CASE("a write deny on a mount itself makes the mount read-only") {
  const auto v = asked{{mount_rule("/w", directory), write_deny_rule("/w", directory)}}.make();
  CHECK(seen_as(v, "/w") == "read-only /w");
}

TEST_CASE("a write deny above a mount leaves the mount as the spec has it, and says so") {
  const auto v = asked{{mount_rule("/repo", directory), mount_rule("/repo/trees/t", directory),
                        write_deny_rule("/repo", directory)}}
                     .make();
  CHECK(seen_as(v, "/repo") == "read-only /repo");
  CHECK(seen_as(v, "/repo/trees/t") == "writable /repo/trees/t");
  CHECK(contains(v.layers().at(2), "'/repo/trees/t' inside is a mount of its own and stays writable"));
}

TEST_CASE("denies hold at every place that shows the path") {
  const auto v = asked{{mount_rule("/srv", directory), mount_rule("/srv/p", directory, "/other"),
                        read_deny_rule("/srv/p/s", directory), write_deny_rule("/srv/p/a/h", directory)}}
                     .make();
  for (const char* root : {"/srv/p", "/other"}) {
    CHECK(seen_as(v, std::string(root) + "/s") == "directory mask");
    CHECK(seen_as(v, std::string(root) + "/a") == "writable /srv/p/a");
    CHECK(seen_as(v, std::string(root) + "/a/h") == "read-only /srv/p/a/h");
  }
  CHECK(seen_as(v, "/srv/p") == "writable /srv/p");
}

TEST_CASE("a deny that another mount lies over has no place there") {
  asked a{{mount_rule("/w", directory), mount_rule("/other", directory, "/w/d"),
           read_deny_rule("/w/d/s", directory)}};
  a.tree.nodes["/w/d"] = node_type::directory;
  const auto v = a.make();
  CHECK(seen_as(v, "/w/d") == "writable /other");
  CHECK(seen_as(v, "/w/d/s") == "nothing");
  CHECK(v.layers().at(2) == "mount: not visible");
}

TEST_CASE("a read-only mount inside a writable one is pinned like a protected path") {
  const auto v = asked{{mount_rule("/w", directory), mount_rule("/w/a/b", directory | read_only)}}.make();
  CHECK(seen_as(v, "/w/a") == "writable /w/a");
  const auto open = asked{{mount_rule("/w", directory), mount_rule("/w/a/b", directory)}}.make();
  CHECK(seen_as(open, "/w/a") == "nothing");
}

TEST_CASE("a mount inside a mask is made in the mask's memory, and the mask lets it be reached") {
  const auto v = asked{{mount_rule("/w", directory), read_deny_rule("/w/.ssh", directory),
                        mount_rule("/w/.ssh/sub", directory | read_only)}}
                     .make();
  REQUIRE(step_at(v, "/w/.ssh"));
  CHECK(step_at(v, "/w/.ssh")->mode == 0111);
  CHECK(seen_as(v, "/w/.ssh/sub") == "read-only /w/.ssh/sub");
  const auto plain = asked{{mount_rule("/w", directory), read_deny_rule("/w/.ssh", directory)}}.make();
  CHECK(step_at(plain, "/w/.ssh")->mode == 0);
}

TEST_CASE("a mount point that the host does not have inside a bound directory is refused, never made") {
  asked a{{mount_rule("/w", directory), mount_rule("/data", directory, "/w/data")}};
  CHECK(a.refusal().status() == CCBOX_INVALID);
  CHECK(contains(a.refusal().what(), "'/w/data' does not exist in the mounted '/w'"));
  a.tree.nodes["/w/data"] = node_type::linked;
  CHECK(contains(a.refusal().what(), "symbolic link"));
  a.tree.nodes["/w/data"] = node_type::other;
  CHECK(contains(a.refusal().what(), "another type"));
  a.tree.nodes["/w/data"] = node_type::directory;
  CHECK(seen_as(a.make(), "/w/data") == "writable /data");
}

TEST_CASE("the same holds for what the session needs when the root directory is bound") {
  asked a{{mount_rule("/", directory | read_only)}};
  a.home = "/run/ccbox/home";
  a.tmpdir = "/run/ccbox/tmp";
  CHECK(contains(a.refusal().what(), "'/proc' does not exist"));
  for (const char* place : {"/proc", "/dev"})
    a.tree.nodes[place] = node_type::directory;
  CHECK(contains(a.refusal().what(), "'/run/ccbox/home' does not exist"));
  a.tree.nodes["/run"] = node_type::directory;
  const auto v = a.make();
  CHECK(seen_as(v, "/proc") == "proc");
  CHECK(seen_as(v, "/dev") == "dev");
  CHECK(seen_as(v, "/run") == "tmpfs");
  CHECK(seen_as(v, "/run/ccbox/home") == "directory");
  CHECK(seen_as(v, "/tmp") == "nothing");
  CHECK(std::count(v.made_read_only().begin(), v.made_read_only().end(), "/") == 0);
}

TEST_CASE("a mount through a link of the root, or in /proc and /dev, is refused") {
  const auto bin = mount_rule("/bin", CCBOX_RULE_EXISTS | CCBOX_RULE_SYMLINK | of_system);
  CHECK(seen_as(asked{{bin}}.make(), "/bin") == "link usr/bin");
  CHECK(contains(asked{{bin, mount_rule("/w/tool", file, "/bin/tool")}}.refusal().what(),
                 "symbolic link '/bin'"));
  for (const char* guest : {"/proc", "/proc/self", "/dev", "/dev/null", "/dev/shm"})
    CHECK(asked{{mount_rule("/w", directory, guest)}}.refusal().status() == CCBOX_INVALID);
}

TEST_CASE("a bad mount is refused with its name") {
  const auto refused = [](const planned_rule& rule) {
    const auto refusal = asked{{rule}}.refusal();
    CHECK(refusal.status() == CCBOX_INVALID);
    return std::string(refusal.what());
  };
  CHECK(contains(refused(mount_rule("/gone", 0)), "'/gone' does not exist"));
  CHECK(contains(refused(mount_rule("/link", CCBOX_RULE_EXISTS | CCBOX_RULE_SYMLINK)),
                 "'/link' is a symbolic link"));
  CHECK(contains(refused(mount_rule("relative", directory)), "'relative'"));
  CHECK(contains(refused(mount_rule("/a/../b", directory)), "'/a/../b'"));
  CHECK(contains(refused(mount_rule("/w", directory, "w")), "'w'"));
  CHECK(contains(refused(mount_rule(std::string("/a\0b", 4), directory)), "\\x00"));
  CHECK(contains(refused(mount_rule("/file", file, "/")), "cannot be mounted at '/'"));
}

TEST_CASE("private directories give way to mounts of the spec, not to those of the system") {
  asked a{{mount_rule("/tmp/project", directory), mount_rule("/home", directory),
           mount_rule("/var", directory | of_system)}};
  a.tree.nodes["/var/tmp"] = node_type::directory;
  const auto v = a.make();
  CHECK(seen_as(v, "/tmp") == "tmpfs");
  CHECK(seen_as(v, "/tmp/project") == "writable /tmp/project");
  CHECK(seen_as(v, "/home/u") == "nothing");
  CHECK(seen_as(v, "/var/tmp") == "tmpfs");
  CHECK(step_at(v, "/tmp")->mode == 01777);
  a.rules.push_back(mount_rule("/tmp", directory));
  a.rules.push_back(mount_rule("/run", directory));
  CHECK(seen_as(a.make(), "/tmp") == "writable /tmp");
  CHECK(seen_as(a.make(), "/run") == "writable /run");
}

TEST_CASE("HOME and TMPDIR exist and are private, also inside /tmp and at the root") {
  asked a{{}};
  a.home = "/tmp/deep/home";
  a.tmpdir = "/scratch";
  const auto v = a.make();
  CHECK(seen_as(v, "/tmp/deep/home") == "directory");
  CHECK(seen_as(v, "/scratch") == "tmpfs");
  CHECK(step_at(v, "/scratch")->mode == 0700);
  a.home = "/dev/shm/x";
  CHECK(a.refusal().status() == CCBOX_INVALID);
  a.home = "relative";
  CHECK(a.refusal().status() == CCBOX_INVALID);
}

TEST_CASE("what no mount can hold takes its bit out of what is enforced") {
  const auto unenforced = [](planned_rule rule) {
    return asked{{mount_rule("/w", directory), std::move(rule)}}.make().unenforced();
  };
  CHECK(unenforced(write_deny_rule("/w/new", 0)) == CCBOX_RULE_FS_WRITE_DENY);
  CHECK(unenforced(write_deny_rule("/w/*.lock", CCBOX_RULE_GLOB)) == CCBOX_RULE_FS_WRITE_DENY);
  CHECK(unenforced(write_deny_rule("/elsewhere/*.lock", CCBOX_RULE_GLOB)) == 0);
  CHECK(unenforced(read_deny_rule("/w/*.pem", CCBOX_RULE_GLOB)) == CCBOX_RULE_FS_READ_DENY);
  CHECK(unenforced(read_deny_rule("*.pem", CCBOX_RULE_GLOB)) == CCBOX_RULE_FS_READ_DENY);
  CHECK(unenforced(write_deny_rule("/w/x", file | 1u << 20)) == CCBOX_RULE_FS_WRITE_DENY);
  CHECK(unenforced({99, 0, CCBOX_RULE_FS_READ_DENY, "/w/x", "/w/x"}) == CCBOX_RULE_FS_READ_DENY);
  // No affair of mounts: floor.hpp.
  CHECK(unenforced({CCBOX_KIND_NAME_DENY, CCBOX_RULE_GLOB, CCBOX_RULE_FS_NAME_DENY, "*.pem", "/w"}) == 0);
  CHECK(unenforced({CCBOX_KIND_EXEC_DENY, 0, CCBOX_RULE_EXEC_DENY, "/w/x", "/w/x"}) == CCBOX_RULE_EXEC_DENY);
  CHECK(unenforced(write_deny_rule("/w/x", file)) == 0);
}

TEST_CASE("rules of a waived bit are not applied") {
  asked a{
      {mount_rule("/w", directory), read_deny_rule("/w/.env", file), write_deny_rule("/w/.git", directory)}};
  a.waived = CCBOX_RULE_FS_READ_DENY;
  CHECK(seen_as(a.make(), "/w/.env") == "nothing");
  CHECK(seen_as(a.make(), "/w/.git") == "read-only /w/.git");
  CHECK(a.make().layers().count(1) == 0);
}

TEST_CASE("a rule through a symbolic link is left to the rule of its target") {
  const auto v = asked{{mount_rule("/w", directory),
                        write_deny_rule("/w/.bashrc", CCBOX_RULE_EXISTS | CCBOX_RULE_SYMLINK),
                        write_deny_rule("/w/dot/bashrc", file | CCBOX_RULE_TARGET)}}
                     .make();
  CHECK(seen_as(v, "/w/.bashrc") == "nothing");
  CHECK(seen_as(v, "/w/dot/bashrc") == "read-only /w/dot/bashrc");
  CHECK(v.unenforced() == 0);
}

TEST_CASE("too many mounts are refused with the numbers and the remedy, quickly") {
  asked a;
  for (int i = 0; i < 10000; ++i)
    a.rules.push_back(mount_rule("/m/" + std::to_string(i), directory));
  CHECK(a.refusal().status() == CCBOX_TOO_LARGE);
  CHECK(contains(a.refusal().what(), "1000"));
  a.rules = {mount_rule("/w", directory)};
  for (int i = 0; i < 10000; ++i)
    a.rules.push_back(write_deny_rule("/w/" + std::to_string(i) + "/.git/hooks", directory));
  CHECK(a.refusal().status() == CCBOX_TOO_LARGE);
  CHECK(contains(a.refusal().what(), "30001 mounts"));
}
