// What a policy denies: secrets, protected paths, and what is mandatory.
#include "policy.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "support/policy_bench.hpp"

using namespace ccbox;
using namespace ccbox::test;
namespace fs = std::filesystem;

TEST_CASE("secrets in a mounted home can be neither read nor written") {
  policy_bench bench;
  bench.spec.bind_mounts = {{bench.home, "", false}};
  const auto p = bench.compile();
  const auto secrets = rules_for(p, rule_kind::read_deny, bench.home + "/.ssh");
  REQUIRE(secrets.size() == 1);
  CHECK(secrets[0].bit == CCBOX_RULE_FS_READ_DENY);
  CHECK(secrets[0].origin == rule_origin::secret);
  CHECK(secrets[0].guest_path == bench.home + "/.ssh");
  CHECK(secrets[0].type == path_type::directory);
  CHECK(secrets[0].reason.find("secret: SSH keys") == 0);
  CHECK(secrets[0].reason.find("policy.yaml:") != std::string::npos);
  const auto answer = check_path(p, bench.home + "/.ssh/id");
  CHECK_FALSE(answer.readable);
  CHECK_FALSE(answer.writable);
  CHECK_FALSE(check_path(p, bench.home + "/.aws/new").creatable);
  CHECK(check_path(p, bench.home + "/other").creatable);
}

TEST_CASE("secrets are denied where the root itself is mounted") {
  policy_bench bench;
  bench.spec.bind_mounts = {{"/", "", true}};
  const auto p = bench.compile();
  CHECK_FALSE(check_path(p, bench.home + "/.ssh/id").readable);
  CHECK(check_path(p, bench.work).readable);
  CHECK_FALSE(check_path(p, "/usr/bin/new").creatable);
}

TEST_CASE("a secret that does not exist yet cannot be made in a writable mount") {
  policy_bench bench;
  bench.spec.bind_mounts = {{bench.home, "", false}};
  const auto p = bench.compile();
  const auto names = rules_for(p, rule_kind::name_deny, bench.home + "/.kube");
  REQUIRE(names.size() == 1);
  CHECK_FALSE(names[0].glob);
  CHECK(names[0].bit == CCBOX_RULE_FS_NAME_DENY);
  CHECK(names[0].guest_path == bench.home);
  CHECK_FALSE(has_rule(p, rule_kind::write_deny, bench.home + "/.kube"));
  CHECK(denies_writing(p, bench.home + "/.kube/config"));
}

TEST_CASE("secrets follow the tree to where it is mounted") {
  policy_bench bench;
  bench.spec.bind_mounts = {{bench.home, "/workspace/home", false}, {bench.home, "/second", false}};
  const auto p = bench.compile();
  CHECK_FALSE(check_path(p, "/workspace/home/.ssh/id").readable);
  CHECK_FALSE(check_path(p, "/second/.ssh/id").readable);
  CHECK(rules_for(p, rule_kind::read_deny, bench.home + "/.ssh").size() == 2);
}

TEST_CASE("a deny whose path no mount shows is listed without a place") {
  policy_bench bench;
  const auto p = bench.compile();
  const auto rules = rules_for(p, rule_kind::read_deny, bench.home + "/.ssh");
  REQUIRE(rules.size() == 1);
  CHECK(rules[0].guest_path.empty());
  bench.spec.protected_paths = {bench.dir / "elsewhere"};
  const auto q = bench.compile();
  const auto protecteds = rules_for(q, rule_kind::write_deny, bench.dir / "elsewhere");
  REQUIRE(protecteds.size() == 1);
  CHECK(protecteds[0].type == path_type::missing);
}

TEST_CASE("what is there for this program alone is neither read nor written") {
  policy_bench bench;
  const auto file = bench.write("proxy.credentials", "user:password");
  bench.host.own_secrets = {file, bench.work + "/missing"};
  const auto p = bench.compile();
  CHECK_FALSE(check_path(p, file).readable);
  CHECK_FALSE(check_path(p, file).writable);
  CHECK_FALSE(check_path(p, bench.work + "/missing").creatable);
  CHECK(check_path(p, bench.work + "/other").creatable);
  bench.mount(file, true);
  CHECK(bench.refusal().what.find("cannot be shown: secret: credentials") != std::string::npos);
}

TEST_CASE("for a root caller this program's credentials are hidden in the system's directories too") {
  policy_bench bench;
  bench.host.uid = 0;
  bench.host.own_secrets = {"/etc/hostname"};  // any file that is there
  const auto p = bench.compile();
  CHECK_FALSE(check_path(p, "/etc/hostname").readable);
}

TEST_CASE("mounting a secret itself, or below it, is refused unless the rule is given up") {
  policy_bench bench;
  for (const auto path : {"/.ssh", "/.aws/credentials"}) {
    bench.spec.bind_mounts = {{bench.home + path, "", true}};
    const auto e = bench.refusal();
    CHECK(e.what.find("secret") != std::string::npos);
    CHECK(e.hint.find("--without fs_read_deny") != std::string::npos);
    bench.spec.without = {"fs_read_deny"};
    CHECK(check_path(bench.compile(), bench.home + path).readable);
    bench.spec.without.clear();
  }
}

TEST_CASE("where reading secrets is allowed, writing them is not") {
  policy_bench bench;
  bench.spec.bind_mounts = {{bench.home, "", false}};
  bench.spec.without = {"fs_read_deny"};
  const auto p = bench.compile();
  CHECK(has_rule(p, rule_kind::write_deny, bench.home + "/.ssh"));
  const auto answer = check_path(p, bench.home + "/.ssh/id");
  CHECK(answer.readable);
  CHECK_FALSE(answer.writable);
}

TEST_CASE("where reading secrets is allowed, a mount of one, or of a part of one, is read-only") {
  policy_bench bench;
  for (const auto path : {"/.aws", "/.aws/credentials", "/.ssh/keys"}) {
    CAPTURE(path);
    fs::create_directories(bench.home + "/.ssh/keys");
    bench.spec.bind_mounts = {{bench.home + path, "", false}};
    bench.spec.without = {"fs_read_deny"};
    const auto p = bench.compile();
    CHECK(check_path(p, bench.home + path).readable);
    CHECK_FALSE(check_path(p, bench.home + path).writable);
    REQUIRE_FALSE(p.rules.empty());
    const auto mount = std::find_if(p.rules.begin(), p.rules.end(),
                                    [&](const rule& r) { return r.guest_path == bench.home + path; });
    REQUIRE(mount != p.rules.end());
    CHECK(mount->read_only);
  }
}

TEST_CASE("secrets of other people's homes count where a mount shows them") {
  policy_bench bench;
  bench.dir.write("other/.ssh/id", "x");
  bench.host.other_homes = {bench.dir / "other"};
  CHECK_FALSE(has_rule(bench.compile(), rule_kind::read_deny, bench.dir / "other/.ssh"));
  bench.mount(bench.dir.path(), true);
  CHECK_FALSE(check_path(bench.compile(), bench.dir / "other/.ssh/id").readable);
}

TEST_CASE("protected paths are not writable in any mode, inside a writable mount, as it, or above it") {
  policy_bench bench;
  bench.write("repo/src/x");
  for (const auto mode : {sandbox_mode::chat, sandbox_mode::review}) {
    bench.spec.mode = mode;
    bench.spec.protected_paths = {bench.work + "/repo"};
    auto p = bench.compile();
    CHECK(denies_writing(p, bench.work + "/repo/src/x"));
    CHECK(check_path(p, bench.work + "/repo/src/x").readable);
    CHECK(check_path(p, bench.work + "/other").creatable == (mode == sandbox_mode::chat));
  }
  bench.spec.mode = sandbox_mode::chat;
  for (const std::string& path : {bench.work, bench.home}) {
    bench.spec.protected_paths = {path};
    const auto p = bench.compile();
    CHECK(denies_writing(p, bench.work + "/x"));
    CHECK(warns(p, "is mounted read-only: protectedPaths[0]"));
  }
  bench.spec.runner_state_dirs = {bench.work};
  bench.spec.protected_paths = {bench.work};
  CHECK(denies_writing(bench.compile(), bench.work + "/x"));
}

TEST_CASE("a protected path that is a link protects the link and its target") {
  policy_bench bench;
  bench.write("real/x");
  fs::create_directory_symlink("real", bench.work + "/link");
  bench.spec.protected_paths = {bench.work + "/link"};
  const auto p = bench.compile();
  const auto literal = rules_for(p, rule_kind::write_deny, bench.work + "/link");
  const auto target = rules_for(p, rule_kind::write_deny, bench.work + "/real");
  REQUIRE(literal.size() == 1);
  REQUIRE(target.size() == 1);
  CHECK(literal[0].type == path_type::symlink);
  CHECK_FALSE(literal[0].is_target);
  CHECK(target[0].is_target);
  CHECK(target[0].type == path_type::directory);
  const auto index_of = [&](const std::string& path) {
    return std::find_if(p.rules.begin(), p.rules.end(), [&](const rule& r) { return r.path == path; }) -
           p.rules.begin();
  };
  CHECK(index_of(bench.work + "/link") + 1 == index_of(bench.work + "/real"));
  // Mounts cannot hold the link's own name: a name rule does.
  CHECK(has_rule(p, rule_kind::name_deny, bench.work + "/link"));
  CHECK(denies_writing(p, bench.work + "/real/x"));
  CHECK(denies_writing(p, bench.work + "/link/x"));
}

TEST_CASE("a protected path that runs through a link is kept in both spellings") {
  policy_bench bench;
  bench.write("real/deep/x");
  fs::create_directory_symlink(bench.work + "/real", bench.dir / "link");
  bench.spec.protected_paths = {bench.dir / "link/deep"};
  const auto p = bench.compile();
  CHECK(has_rule(p, rule_kind::write_deny, bench.dir / "link/deep"));
  CHECK(has_rule(p, rule_kind::write_deny, bench.work + "/real/deep"));
  CHECK(denies_writing(p, bench.work + "/real/deep/x"));
}

TEST_CASE("a protected path that does not resolve is kept as written, and as a name in a writable mount") {
  policy_bench bench;
  fs::create_symlink("gone", bench.work + "/dangling");
  bench.spec.protected_paths = {bench.work + "/none/deeper", bench.work + "/dangling"};
  const auto p = bench.compile();
  CHECK(denies_writing(p, bench.work + "/none/deeper"));
  CHECK(denies_writing(p, bench.work + "/none/deeper/x"));
  CHECK(denies_writing(p, bench.work + "/gone"));
  CHECK(denies_writing(p, bench.work + "/dangling"));
  CHECK(check_path(p, bench.work + "/none/other").creatable);
}

TEST_CASE("a protected path that can be created, because names are given up, is warned of") {
  policy_bench bench;
  bench.write("there");
  bench.spec.protected_paths = {bench.work + "/there", bench.work + "/missing"};
  bench.spec.without = {"fs_name_deny"};
  auto p = bench.compile();
  REQUIRE(p.warnings.size() == 2);
  CHECK(p.warnings[1].find(bench.work + "/missing' can be created") != std::string::npos);
  CHECK(check_path(p, bench.work + "/missing").creatable);
  bench.spec.bind_mounts[0].read_only = true;
  CHECK(bench.compile().warnings.size() == 1);
}

TEST_CASE("a protected glob covers what exists and what does not yet") {
  policy_bench bench;
  bench.write("a/x.lock");
  bench.write("b/c/y.lock");
  bench.write("b/c/z.txt");
  bench.spec.protected_paths = {bench.work + "/*/x.lock", bench.home + "/**/y.lock"};
  const auto p = bench.compile();
  CHECK(denies_writing(p, bench.work + "/a/x.lock"));
  CHECK(has_rule(p, rule_kind::write_deny, bench.work + "/a/x.lock"));
  CHECK(denies_writing(p, bench.work + "/new/x.lock"));
  CHECK(check_path(p, bench.work + "/new/deeper/x.lock").creatable);
  CHECK(has_rule(p, rule_kind::write_deny, bench.work + "/b/c/y.lock"));
  CHECK(denies_writing(p, bench.work + "/new/deeper/y.lock"));
  CHECK(check_path(p, bench.work + "/b/c/z.txt").writable);
  bench.spec.protected_paths = {bench.home + "/w*"};
  CHECK(denies_writing(bench.compile(), bench.work + "/x"));
}

TEST_CASE("a protected path with wildcard characters that exists means itself") {
  policy_bench bench;
  bench.write("st*r/x");
  bench.write("star/x");
  bench.spec.protected_paths = {bench.work + "/st*r"};
  const auto p = bench.compile();
  CHECK(denies_writing(p, bench.work + "/st*r/x"));
  CHECK(check_path(p, bench.work + "/star/x").writable);
}

TEST_CASE("mandatory denies hold at any depth of every writable mount, wherever the work directory is") {
  policy_bench bench;
  bench.dir.write("second/x", "x");
  bench.write("sub/x");
  bench.mount(bench.dir / "second");
  bench.spec.guest_workdir = bench.work + "/sub";
  const auto p = bench.compile();
  for (const std::string& root : {bench.work, bench.dir / "second"}) {
    CHECK(has_name_rule(p, ".bashrc", root));
    CHECK(has_name_rule(p, "**/.git/hooks/*", root));
    for (const std::string at : {"/", "/a/b/c/"})
      for (const std::string name : {".bashrc", ".git/hooks/pre-commit", ".git/config", ".env", "x.key",
                                     ".claude/settings.json", ".vscode/tasks.json", ".mcp.json"})
        CHECK_MESSAGE(denies_writing(p, root + at + name), name);
  }
  CHECK(check_path(p, bench.work + "/.git/HEAD").creatable);
  CHECK(check_path(p, bench.work + "/.env.example").creatable);
  CHECK(check_path(p, bench.work + "/.git/hooks/pre-commit.sample").creatable);
}

TEST_CASE("read-only mounts have no name rules") {
  policy_bench bench;
  bench.spec.bind_mounts = {{bench.work, "", true}};
  const auto p = bench.compile();
  CHECK(std::none_of(p.rules.begin(), p.rules.end(),
                     [](const rule& r) { return r.kind == rule_kind::name_deny; }));
}

TEST_CASE("what exists of denied names is write-denied one by one, or as one directory") {
  policy_bench bench;
  bench.write("a/b/c/d/.env");
  bench.write("server.key");
  bench.write("repo/.git/hooks/pre-commit");
  bench.write("repo/.git/config");
  bench.write("repo/.git/HEAD");
  const auto p = bench.compile();
  for (const auto path : {"/a/b/c/d/.env", "/server.key", "/repo/.git/hooks", "/repo/.git/config"}) {
    const auto rules = rules_for(p, rule_kind::write_deny, bench.work + path);
    REQUIRE_MESSAGE(rules.size() == 1, path);
    CHECK(rules[0].origin == rule_origin::existing_match);
    CHECK(rules[0].bit == CCBOX_RULE_FS_WRITE_DENY);
    CHECK(rules[0].guest_path == bench.work + path);
    CHECK(rules[0].type != path_type::missing);
  }
  CHECK_FALSE(has_rule(p, rule_kind::write_deny, bench.work + "/repo/.git/hooks/pre-commit"));
  CHECK(check_path(p, bench.work + "/repo/.git/HEAD").writable);
}

TEST_CASE("existing matches stay denied where name rules are given up") {
  policy_bench bench;
  bench.write(".env");
  bench.spec.without = {"fs_name_deny"};
  const auto p = bench.compile();
  CHECK(denies_writing(p, bench.work + "/.env"));
  CHECK(check_path(p, bench.work + "/new/.env").creatable);
}

TEST_CASE("an existing match that is a link denies what it leads to") {
  policy_bench bench;
  bench.write("home-manager/bashrc");
  bench.write("hooks-dir/x");
  fs::create_directories(bench.work + "/.git");
  fs::create_symlink("home-manager/bashrc", bench.work + "/.bashrc");
  fs::create_directory_symlink("../hooks-dir", bench.work + "/.git/hooks");
  fs::create_symlink("/no/such/file", bench.work + "/.zshrc");
  const auto p = bench.compile();
  CHECK(denies_writing(p, bench.work + "/home-manager/bashrc"));
  CHECK(denies_writing(p, bench.work + "/.bashrc"));
  CHECK(denies_writing(p, bench.work + "/.git/hooks/x"));
  CHECK(denies_writing(p, bench.work + "/.zshrc"));
}

TEST_CASE("a link that stands for a part of a protected path carries the rule to where it leads") {
  policy_bench bench;
  bench.write("store/hooks/pre-commit");
  bench.write("store/config");
  bench.write("store/HEAD");
  bench.write("dot-claude/x");
  fs::create_directories(bench.work + "/repo");
  fs::create_directory_symlink("../store", bench.work + "/repo/.git");
  fs::create_directory_symlink(bench.work + "/dot-claude", bench.work + "/.claude");
  fs::create_directory_symlink(".", bench.work + "/dot-claude/commands");
  fs::create_directory_symlink("/usr", bench.work + "/.vscode");
  const auto p = bench.compile();
  for (const auto path : {"/store/hooks/pre-commit", "/store/hooks/new", "/store/config", "/store/commondir",
                          "/repo/.git/config", "/dot-claude/settings.json", "/.claude/settings.json"})
    CHECK_MESSAGE(denies_writing(p, bench.work + path), path);
  CHECK(check_path(p, bench.work + "/store/HEAD").writable);
  // The links themselves stay what they are.
  CHECK(has_rule(p, rule_kind::name_deny, bench.work + "/repo/.git"));
  CHECK(has_rule(p, rule_kind::name_deny, bench.work + "/.claude"));
}

TEST_CASE("too many existing matches are refused with the mount, the number and the remedy") {
  policy_bench bench;
  bench.config.max_existing_matches = 3;
  bench.spec.without = {"fs_name_deny"};
  for (int i = 0; i < 4; ++i)
    bench.write(std::to_string(i) + ".pem");
  const auto e = bench.refusal();
  CHECK(e.code == error_code::too_large);
  CHECK(e.what.find("more than 3 existing files below '" + bench.work + "'") == 0);
  CHECK(e.hint.find("read-only") != std::string::npos);
}

TEST_CASE("existing matches that need many mounts are left to the name rules, where those must hold") {
  const auto matches_in = [](const policy& p) {
    std::size_t count = 0;
    for (const rule& r : p.rules)
      count += r.kind == rule_kind::write_deny && r.origin == rule_origin::existing_match;
    return count;
  };
  policy_bench bench;
  const auto write_matches = [&](int first, int end) {
    for (int i = first; i < end; ++i)
      bench.write(std::to_string(i) + "/deep/.env");
  };
  write_matches(0, 133);  // three mounts each
  CHECK(matches_in(bench.compile()) == 133);
  write_matches(133, 134);
  bench.write("repo/.git/config");        // may be made anew: what is there needs a rule of its own
  bench.write("repo/.git/info/exclude");  // so may this
  bench.write("target");
  std::filesystem::create_symlink("target", bench.work + "/.envrc");  // leads elsewhere
  const auto p = bench.compile();
  CHECK(matches_in(p) == 4);
  for (const auto* path : {"/repo/.git/config", "/repo/.git/info/exclude", "/target"})
    CHECK_MESSAGE(has_rule(p, rule_kind::write_deny, bench.work + path), path);
  CHECK(denies_writing(p, bench.work + "/7/deep/.env"));
  // Far more than could be mounted.
  bench.config.max_existing_matches = 3;
  CHECK(matches_in(bench.compile()) == 4);
  bench.config.max_existing_matches = 1000;
  SUBCASE("not where they were given up") {
    bench.spec.without = {"fs_name_deny"};
    CHECK(matches_in(bench.compile()) == 138);
  }
  SUBCASE("not where the policy file does not ask for them") {
    bench.config.required_linux &= ~CCBOX_RULE_FS_NAME_DENY;
    CHECK(matches_in(bench.compile()) == 138);
  }
}

TEST_CASE("a directory that its owner made unreadable hides nothing from the rules") {
  policy_bench bench;
  bench.write("shut/.env");
  REQUIRE(::chmod((bench.work + "/shut").c_str(), 0) == 0);
  CHECK(denies_writing(bench.compile(), bench.work + "/shut/.env"));
  REQUIRE(::chmod((bench.home + "/.ssh").c_str(), 0) == 0);
  bench.spec.bind_mounts = {{bench.home, "", false}};
  CHECK_FALSE(check_path(bench.compile(), bench.home + "/.ssh/id").readable);
  REQUIRE(::chmod((bench.work + "/shut").c_str(), 0700) == 0);
  REQUIRE(::chmod((bench.home + "/.ssh").c_str(), 0700) == 0);
}

TEST_CASE("a secret below a directory that may not be searched denies the directory") {
  policy_bench bench;
  bench.dir.write("home/.cargo/credentials", "x");
  bench.spec.bind_mounts = {{bench.home, "", false}};
  REQUIRE(::chmod((bench.home + "/.cargo").c_str(), 0) == 0);
  const auto p = bench.compile();
  CHECK_FALSE(check_path(p, bench.home + "/.cargo/credentials").readable);
  if (::geteuid() != 0) CHECK(has_rule(p, rule_kind::read_deny, bench.home + "/.cargo"));
  REQUIRE(::chmod((bench.home + "/.cargo").c_str(), 0700) == 0);
}

TEST_CASE("mounting part of a repository protects what is dangerous in that part") {
  policy_bench bench;
  bench.write("r/.git/config");
  bench.write("r/.git/hooks/pre-commit");
  bench.write("r/.git/worktrees/w/HEAD");
  bench.spec.bind_mounts = {{bench.work + "/r/.git", "", false}};
  const auto p = bench.compile();
  CHECK(denies_writing(p, bench.work + "/r/.git/config"));
  CHECK(denies_writing(p, bench.work + "/r/.git/hooks/new"));
  CHECK(denies_writing(p, bench.work + "/r/.git/commondir"));
  CHECK_FALSE(check_path(p, bench.work + "/r/.git/worktrees/w/commondir").writable);
  CHECK(check_path(p, bench.work + "/r/.git/worktrees/w/HEAD").writable);
  CHECK(check_path(p, bench.work + "/r/.git/index.lock").creatable);
  bench.spec.bind_mounts = {{bench.work + "/r/.git/hooks", "", false}};
  CHECK(denies_writing(bench.compile(), bench.work + "/r/.git/hooks/pre-commit"));
}

TEST_CASE("a mounted file of a denied name, or a directory in a denied place, is read-only and says so") {
  policy_bench bench;
  bench.write(".env");
  bench.write("x/.husky/_/husky.sh");
  bench.write("site.key/index.html");
  bench.write(".env.example");
  for (const auto path : {"/.env", "/x/.husky/_"}) {
    bench.spec.bind_mounts = {{bench.work + path, "", false}};
    const auto p = bench.compile();
    CHECK(denies_writing(p, bench.work + path));
    CHECK(warns(p, "is mounted read-only: mandatory deny"));
  }
  for (const auto path : {"/site.key", "/.env.example"}) {
    bench.spec.bind_mounts = {{bench.work + path, "", false}};
    CHECK(bench.compile().warnings.empty());
  }
  CHECK(check_path(bench.compile(), bench.work + "/.env.example").writable);
}

TEST_CASE("a runner's own state directory stays usable; what is dangerous inside it does not") {
  policy_bench bench;
  bench.dir.write("state/.claude/x", "x");
  bench.spec.mode = sandbox_mode::review;
  bench.spec.runner_state_dirs = {bench.dir / "state/.claude"};
  const auto p = bench.compile();
  CHECK(check_path(p, bench.dir / "state/.claude/settings.json").creatable);
  CHECK(denies_writing(p, bench.dir / "state/.claude/repo/.git/hooks/x"));
}

TEST_CASE("a worktree, where .git is a file, starts; what it leads to is protected") {
  policy_bench bench;
  bench.write("wt/.git", "gitdir: " + bench.work + "/store/worktrees/wt\n");
  bench.write("store/worktrees/wt/commondir", "../..\n");
  bench.write("store/worktrees/wt/HEAD");
  bench.write("store/config");
  bench.write("store/index");
  const auto p = bench.compile();
  CHECK(denies_writing(p, bench.work + "/wt/.git"));
  CHECK(denies_writing(p, bench.work + "/store/config"));
  CHECK(denies_writing(p, bench.work + "/store/hooks/pre-commit"));
  CHECK(denies_writing(p, bench.work + "/store/worktrees/wt/commondir"));
  CHECK(check_path(p, bench.work + "/store/worktrees/wt/HEAD").writable);
  CHECK(check_path(p, bench.work + "/store/index").writable);
  CHECK(p.warnings.empty());
  // Only the worktree is mounted: the rest is out of sight, and somebody should know.
  bench.spec.bind_mounts = {{bench.work + "/wt", "", false}};
  const auto q = bench.compile();
  CHECK(denies_writing(q, bench.work + "/wt/.git"));
  CHECK(warns(q, "git inside will not find '" + bench.work + "/store/worktrees/wt'"));
}

TEST_CASE("an existing bare repository is protected under any name") {
  policy_bench bench;
  bench.write("mirror/HEAD");
  bench.write("mirror/config");
  fs::create_directories(bench.work + "/mirror/objects");
  fs::create_directories(bench.work + "/mirror/refs");
  const auto p = bench.compile();
  CHECK(denies_writing(p, bench.work + "/mirror/config"));
  CHECK(denies_writing(p, bench.work + "/mirror/hooks/post-receive"));
  CHECK(check_path(p, bench.work + "/mirror/refs/heads").creatable);
}
