#include "policy_config.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "glob.hpp"
#include "support/temporary_directory.hpp"

using namespace ccbox;

namespace {

const std::string shipped_file = std::string(CCBOX_TEST_SOURCE_DIR) + "/config/policy.yaml";

const policy_config& shipped() {
  static const policy_config config = [] {
    auto loaded = load_policy_config(shipped_file);
    REQUIRE_MESSAGE(loaded.has_value(), loaded.error().what);
    return *loaded;
  }();
  return config;
}

bool lists(const std::vector<config_entry>& entries, std::string_view pattern) {
  return std::any_of(entries.begin(), entries.end(), [&](const auto& e) { return e.pattern == pattern; });
}

// As the name rules decide: some deny covers it or what leads to it, and no exempt names it.
bool is_denied_name(const std::string& path) {
  const auto matches = [&](const std::vector<config_entry>& entries, bool within) {
    return std::any_of(entries.begin(), entries.end(), [&](const auto& e) {
      const auto g = compile_glob(e.pattern);
      return within ? g->matches_within(path) : g->matches(path);
    });
  };
  return matches(shipped().name_deny, true) && !matches(shipped().name_exempt, false);
}

const std::string minimal =
    "required:\n"
    "  linux: [fs_binds_only, pid_isolation]\n"
    "  macos: []\n"
    "system_read: []\n"
    "read_deny: []\n"
    "write_deny: []\n"
    "name_deny: []\n"
    "name_exempt: []\n"
    "exec_deny: []\n"
    "max_existing_matches: 5\n"
    "environment: {allow: [], deny: [], secret_names: [], secret_values: []}\n";

std::string with(std::string_view line, std::string_view replacement) {
  std::string out = minimal;
  const auto at = out.find(line);
  REQUIRE(at != std::string::npos);
  return out.replace(at, line.size(), replacement);
}

error refusal(const std::string& text) {
  const auto config = parse_policy_config(text, "p.yaml");
  REQUIRE_FALSE(config.has_value());
  CHECK(config.error().code == error_code::invalid_argument);
  return config.error();
}

}  // namespace

TEST_CASE("the shipped policy requires what the specification's dispatch policy requires") {
  CHECK(join_rule_bits(shipped().required_linux) ==
        "fs_binds_only, fs_read_deny, fs_write_deny, fs_name_deny, net_proxy_only, pid_isolation");
  CHECK(join_rule_bits(shipped().required_macos) ==
        "fs_read_deny, fs_write_deny, fs_name_deny, exec_deny, net_proxy_only");
  CHECK(shipped().max_existing_matches == 1000);
}

TEST_CASE("the shipped policy hides the specification's secrets and their kin") {
  for (const auto path : {"~/.ssh",
                          "~/.aws",
                          "~/.gnupg",
                          "~/.config/gh",
                          "~/Library/Keychains",
                          "~/.netrc",
                          "~/.docker",
                          "~/.kube",
                          "~/.config/gcloud",
                          "~/.azure",
                          "~/.npmrc",
                          "~/.pypirc",
                          "~/.git-credentials",
                          "~/.cargo/credentials",
                          "~/.cargo/credentials.toml",
                          "~/.local/share/keyrings",
                          "~/.mozilla",
                          "~/.config/google-chrome",
                          "~/.bash_history",
                          "~/.zsh_history",
                          "/etc/shadow",
                          "/etc/gshadow",
                          "/etc/sudoers",
                          "/etc/ssl/private",
                          "/etc/ssh/ssh_host_*_key",
                          "/etc/apt/auth.conf",
                          "/etc/krb5.keytab"})
    CHECK_MESSAGE(lists(shipped().read_deny, path), path);
}

TEST_CASE("every entry of the shipped policy says why and where it stands") {
  for (const auto* entries : {&shipped().system_read, &shipped().read_deny, &shipped().write_deny,
                              &shipped().name_deny, &shipped().name_exempt, &shipped().exec_deny}) {
    CHECK_FALSE(entries->empty());
    std::set<std::string> seen;
    for (const auto& e : *entries) {
      CHECK_MESSAGE(e.reason.size() > 10, e.pattern);
      CHECK_MESSAGE(e.where.starts_with(shipped_file + ":"), e.where);
      CHECK_MESSAGE(seen.insert(e.pattern).second, "listed twice: ", e.pattern);
    }
  }
}

TEST_CASE("the shipped name rules deny what tools execute or trust, at any depth") {
  for (const std::string name : {".env",
                                 ".env.local",
                                 ".env.production",
                                 "server.key",
                                 "cert.pem",
                                 "id_rsa",
                                 ".bashrc",
                                 ".bash_profile",
                                 ".bash_login",
                                 ".bash_logout",
                                 ".profile",
                                 ".zshrc",
                                 ".zshenv",
                                 ".zprofile",
                                 ".envrc",
                                 ".npmrc",
                                 ".gitconfig",
                                 ".git/hooks/pre-commit",
                                 ".git/config",
                                 ".git/config.worktree",
                                 ".git/commondir",
                                 ".git/info/attributes",
                                 ".git/info/exclude",
                                 ".git/modules/sm/config",
                                 ".git/modules/sm/hooks/post-checkout",
                                 ".git/modules/a/modules/b/hooks/x",
                                 ".git/modules/sm/config.worktree",
                                 ".git/worktrees/w/commondir",
                                 ".git/worktrees/w/config.worktree",
                                 ".git/worktrees/w/gitdir",
                                 ".husky/pre-commit",
                                 ".pre-commit-config.yaml",
                                 ".vscode/tasks.json",
                                 ".vscode/settings.json",
                                 ".vscode/launch.json",
                                 ".idea/workspace.xml",
                                 ".idea/runConfigurations/x.xml",
                                 ".vimrc",
                                 ".exrc",
                                 ".gdbinit",
                                 ".claude/settings.json",
                                 ".claude/settings.local.json",
                                 ".claude/commands/x.md",
                                 ".claude/agents/deep/x.md",
                                 ".claude/hooks/x.sh",
                                 ".claude/skills/s/SKILL.md",
                                 ".mcp.json",
                                 ".cursor/mcp.json",
                                 ".vscode/mcp.json",
                                 ".codex/config.toml",
                                 ".gemini/settings.json",
                                 ".devcontainer/devcontainer.json",
                                 ".config/fish/config.fish",
                                 ".config/git/config",
                                 ".cargo/config.toml",
                                 ".emacs.d/init.el",
                                 ".tmux.conf",
                                 "x.code-workspace"}) {
    CHECK_MESSAGE(is_denied_name(name), name);
    CHECK_MESSAGE(is_denied_name("a/b/c/" + name), name);
    std::string upper = name;
    std::transform(upper.begin(), upper.end(), upper.begin(),
                   [](unsigned char c) { return std::toupper(c); });
    CHECK_MESSAGE(is_denied_name("sub/" + upper), upper);
  }
}

TEST_CASE("the shipped name rules leave ordinary work alone") {
  for (const std::string name : {"src/main.c",
                                 "Makefile",
                                 "CMakeLists.txt",
                                 "package.json",
                                 "README.md",
                                 "CLAUDE.md",
                                 "AGENTS.md",
                                 ".gitignore",
                                 ".gitattributes",
                                 ".gitmodules",
                                 ".github/workflows/ci.yml",
                                 ".git/HEAD",
                                 ".git/index",
                                 ".git/index.lock",
                                 ".git/objects/ab/cdef",
                                 ".git/refs/heads/main",
                                 ".git/logs/HEAD",
                                 ".git/info/refs",
                                 ".git/COMMIT_EDITMSG",
                                 ".git/packed-refs",
                                 ".git/hooks",
                                 ".git/worktrees/w/HEAD",
                                 ".claude/notes.md",
                                 ".editorconfig",
                                 ".eslintrc.json",
                                 ".prettierrc",
                                 "env",
                                 "keys/x.pub",
                                 "monkey",
                                 "public.pem.txt",
                                 "node_modules/x/index.js",
                                 ".vscode/README.md",
                                 ".env.example",
                                 ".env.sample",
                                 ".env.template",
                                 ".env.dist",
                                 ".git/hooks/pre-commit.sample",
                                 ".git/modules/sm/hooks/update.sample"})
    CHECK_MESSAGE(!is_denied_name(name), name);
}

TEST_CASE("the shipped environment lists do not contradict each other") {
  for (const auto& name : shipped().environment.allow)
    for (const auto& pattern : shipped().environment.deny)
      CHECK_MESSAGE(!wildcard_match(pattern, name, true), name << " is caught by " << pattern);
}

TEST_CASE("a small complete policy file loads") {
  const auto config = parse_policy_config(
      with("name_deny: []\n", "name_deny:\n  - why: keys\n    paths: ['*.key', .env]\n"), "p.yaml");
  REQUIRE_MESSAGE(config.has_value(), config.error().what);
  REQUIRE(config->name_deny.size() == 2);
  CHECK(config->name_deny[0].pattern == "*.key");
  CHECK(config->name_deny[0].reason == "keys");
  CHECK(config->name_deny[1].where == "p.yaml:9:22");
  CHECK(config->max_existing_matches == 5);
}

TEST_CASE("a condition of a name rule is one that is known, and nothing but name_deny has any") {
  const auto config =
      parse_policy_config(with("name_deny: []\n",
                               "name_deny:\n"
                               "  - {why: c, vetted: git-config, paths: ['**/.git/config']}\n"
                               "  - {why: w, vetted: new, paths: ['**/.git/worktrees/*/gitdir']}\n"
                               "  - {why: k, paths: ['*.key']}\n"),
                          "p.yaml");
  REQUIRE_MESSAGE(config.has_value(), config.error().what);
  REQUIRE(config->name_deny.size() == 3);
  CHECK(config->name_deny[0].condition == name_condition::git_config);
  CHECK(config->name_deny[1].condition == name_condition::is_new);
  CHECK(config->name_deny[2].condition == name_condition::none);
  for (const std::string bad : {"git", "''", "true", "[git-config]"})
    CHECK(refusal(with("name_deny: []", "name_deny: [{why: x, vetted: " + bad + ", paths: [a]}]"))
              .what.find(".yaml:7:") != std::string::npos);
  refusal(with("name_exempt: []", "name_exempt: [{why: x, vetted: git-config, paths: [a]}]"));
  refusal(with("read_deny: []", "read_deny: [{why: x, vetted: git-config, paths: [/a]}]"));
}

TEST_CASE("a missing section is an error, not an empty one") {
  for (const std::string key : {"required", "system_read", "read_deny", "write_deny", "name_deny",
                                "name_exempt", "exec_deny", "max_existing_matches", "environment"}) {
    std::string text = minimal;
    const auto begin = text.find("\n" + key + ":") == std::string::npos ? 0 : text.find("\n" + key + ":") + 1;
    auto end = text.find('\n', begin) + 1;
    while (end < text.size() && text[end] == ' ')
      end = text.find('\n', end) + 1;
    text.erase(begin, end - begin);
    CHECK(refusal(text).what.find("missing section '" + key + "'") != std::string::npos);
  }
  for (const std::string key : {"allow", "deny", "secret_names"})
    CHECK(refusal(with(key + ": [], ", "")).what.ends_with("missing key '" + key + "'"));
}

TEST_CASE("unknown and duplicate keys are errors with line and column") {
  CHECK(refusal(minimal + "extra: 1\n").what.starts_with("p.yaml:12:1: "));
  CHECK(refusal(minimal + "read_deny: []\n").what.starts_with("p.yaml:12:1: "));
  const auto e = refusal(with("read_deny: []", "read_deny: [{why: x, path: [/a]}]"));
  CHECK(e.what.starts_with("p.yaml:5:"));
  CHECK(e.what.find("path") != std::string::npos);
}

TEST_CASE("no policy file can do without what no launch goes without") {
  CHECK(refusal(with("[fs_binds_only, pid_isolation]", "[fs_binds_only]")).what ==
        "p.yaml:2:10: 'pid_isolation' is missing; no launch goes without it");
  CHECK(refusal(with("macos: []", "macos: [fs_magic]")).what == "p.yaml:3:11: unknown rule 'fs_magic'");
}

TEST_CASE("patterns that could not mean anything, or would mean everything, are refused") {
  for (const std::string bad : {"relative", "~", "'~root/x'", "/", "/a/../b", "//", "''", "~/../x"}) {
    const auto e = refusal(with("read_deny: []", "read_deny: [{why: x, paths: [" + bad + "]}]"));
    CHECK_MESSAGE(e.what.starts_with("p.yaml:5:30: "), e.what);
  }
  for (const std::string bad : {"/etc/x", "~/.x", "a/../b", "''"})
    refusal(with("name_deny: []", "name_deny: [{why: x, paths: [" + bad + "]}]"));
  refusal(with("system_read: []", "system_read: [{why: x, paths: ['/usr/*']}]"));
  refusal(with("read_deny: []", "read_deny: [{why: x, paths: []}]"));
  refusal(with("read_deny: []", "read_deny: [{why: '', paths: [/a]}]"));
  refusal(with("read_deny: []", "read_deny: [{why: \"two\\nlines\", paths: [/a]}]"));
  refusal(with("read_deny: []", "read_deny: [{why: x, paths: [\"/a\\0b\"]}]"));
  refusal(with("read_deny: []", "read_deny: {why: x}"));
  refusal(with("max_existing_matches: 5", "max_existing_matches: 0"));
  refusal(with("max_existing_matches: 5", "max_existing_matches: many"));
  refusal(with(" deny: []", " deny: [LD_*]"));
  refusal(with(" deny: []", " deny: [{why: x, names: ' '}]"));
  refusal(with(" deny: []", " deny: [{why: x}]"));
  refusal(with("allow: []", "allow: ['*']"));
  refusal(with("allow: []", "allow: ['']"));
}

TEST_CASE("denied variables come in groups of names") {
  const auto config = parse_policy_config(
      with(" deny: []", " deny: [{why: x, names: \"A  B_*\\n C\"}, {why: y, names: D}]"), "p.yaml");
  REQUIRE_MESSAGE(config.has_value(), config.error().what);
  CHECK(config->environment.deny == std::vector<std::string>{"A", "B_*", "C", "D"});
}

TEST_CASE("fixed paths are normalised, wildcards in them kept") {
  const auto config = parse_policy_config(
      with("read_deny: []", "read_deny: [{why: x, paths: [~//a/./b/, /e/*_key]}]"), "p.yaml");
  REQUIRE(config.has_value());
  CHECK(config->read_deny[0].pattern == "~/a/b");
  CHECK(config->read_deny[1].pattern == "/e/*_key");
}

TEST_CASE("a policy file that is not there is an error that names it") {
  const test::temporary_directory dir;
  const auto config = load_policy_config(dir / "none.yaml");
  REQUIRE_FALSE(config.has_value());
  CHECK(config.error().what.find("none.yaml") != std::string::npos);
}

TEST_CASE("without a name the policy of this very build is loaded") {
  const auto config = load_policy_config("");
  REQUIRE(config.has_value());
  CHECK(config->file == shipped_file);
}
