#include "environment.hpp"

#include <doctest/doctest.h>

#include "policy_config.hpp"

using namespace ccbox;

namespace {

const environment_config& shipped() {
  static const environment_config config = [] {
    auto loaded = load_policy_config(std::string(CCBOX_TEST_SOURCE_DIR) + "/config/policy.yaml");
    REQUIRE_MESSAGE(loaded.has_value(), loaded.error().what);
    return loaded->environment;
  }();
  return config;
}

bool survives(const std::string& name, const std::string& value) {
  return sanitise_environment({{name, value}}, shipped()).contains(name);
}

bool passes_fence(const std::string& name) {
  return strip_injection({{name, "x"}}, shipped()).contains(name);
}

}  // namespace

TEST_CASE("what is kept does not depend on whether anybody asks for the reasons") {
  const environment host = {{"LANG", "C"},
                            {"LC_ALL", "C"},
                            {"LD_PRELOAD", "x"},
                            {"MY_SETTING", "1"},
                            {"PATH", "/usr/bin"},
                            {"TERM", "xterm"},
                            {"A-B", "x"},
                            {"", "x"},
                            {"TZ", "sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaa"}};
  std::vector<dropped_variable> dropped;
  const auto kept = sanitise_environment(host, shipped(), &dropped);
  CHECK(sanitise_environment(host, shipped()) == kept);
  CHECK(kept.size() + dropped.size() == host.size());
  CHECK(kept.contains("TERM"));
}

TEST_CASE("what is on the allow-list is kept as it is") {
  const environment host = {{"USER", "u"},       {"LANG", "C.UTF-8"},  {"LC_ALL", "C"}, {"LC_CTYPE", "C"},
                            {"TERM", "xterm"},   {"NO_COLOR", ""},     {"TZ", "UTC"},   {"COLUMNS", "80"},
                            {"LOGNAME", "user"}, {"COLORTERM", "x y"}, {"CI", "true"}};
  CHECK(sanitise_environment(host, shipped()) == host);
}

TEST_CASE("what is on no list is dropped") {
  std::vector<dropped_variable> dropped;
  CHECK(sanitise_environment({{"MY_SETTING", "1"}, {"EDITOR_X", "1"}}, shipped(), &dropped).empty());
  REQUIRE(dropped.size() == 2);
  CHECK(dropped[0].reason == "not on the allow-list");
}

TEST_CASE("every known way to inject code or redirect programs is stopped by the fence") {
  for (const std::string name : {"LD_PRELOAD",
                                 "LD_AUDIT",
                                 "DYLD_INSERT_LIBRARIES",
                                 "GLIBC_TUNABLES",
                                 "GCONV_PATH",
                                 "HOSTALIASES",
                                 "BASH_ENV",
                                 "ENV",
                                 "SHELLOPTS",
                                 "PS4",
                                 "PROMPT_COMMAND",
                                 "IFS",
                                 "ZDOTDIR",
                                 "NODE_OPTIONS",
                                 "npm_config_script_shell",
                                 "NPM_CONFIG_REGISTRY",
                                 "PYTHONPATH",
                                 "PYTHONSTARTUP",
                                 "PYTHONBREAKPOINT",
                                 "PYTHONWARNINGS",
                                 "PIP_INDEX_URL",
                                 "PERL5OPT",
                                 "PERL5DB",
                                 "RUBYOPT",
                                 "LUA_INIT_5_4",
                                 "JAVA_TOOL_OPTIONS",
                                 "_JAVA_OPTIONS",
                                 "CLASSPATH",
                                 "DOTNET_STARTUP_HOOKS",
                                 "GOFLAGS",
                                 "RUSTC_WRAPPER",
                                 "CARGO_HOME",
                                 "CC",
                                 "MAKEFLAGS",
                                 "COMPILER_PATH",
                                 "GCC_EXEC_PREFIX",
                                 "CMAKE_TOOLCHAIN_FILE",
                                 "GIT_SSH_COMMAND",
                                 "GIT_SSH",
                                 "GIT_EXEC_PATH",
                                 "GIT_DIR",
                                 "GIT_CONFIG_COUNT",
                                 "GIT_CONFIG_KEY_0",
                                 "GIT_CONFIG_GLOBAL",
                                 "GIT_EXTERNAL_DIFF",
                                 "GIT_TEMPLATE_DIR",
                                 "GIT_ALLOW_PROTOCOL",
                                 "GH_TOKEN",
                                 "GITHUB_TOKEN",
                                 "PAGER",
                                 "LESSOPEN",
                                 "EDITOR",
                                 "VISUAL",
                                 "VIMINIT",
                                 "TAR_OPTIONS",
                                 "RIPGREP_CONFIG_PATH",
                                 "CURL_HOME",
                                 "OPENSSL_CONF",
                                 "SSLKEYLOGFILE",
                                 "DOCKER_HOST",
                                 "KUBECONFIG",
                                 "AWS_SECRET_ACCESS_KEY",
                                 "SSH_AUTH_SOCK",
                                 "DBUS_SESSION_BUS_ADDRESS",
                                 "DISPLAY",
                                 "XDG_RUNTIME_DIR",
                                 "SUDO_USER",
                                 "CC_SERVER_SANDBOX",
                                 "ANTHROPIC_API_KEY",
                                 "CLAUDE_CONFIG_DIR"}) {
    CHECK_MESSAGE(!passes_fence(name), name);
    CHECK_MESSAGE(!survives(name, "x"), name);
  }
}

TEST_CASE("the fence has no regard to case") {
  for (const std::string name : {"ld_preload", "Node_Options", "git_SSH_command", "NPM_config_x"})
    CHECK_MESSAGE(!passes_fence(name), name);
}

TEST_CASE("the fence outranks the allow-list") {
  environment_config config;
  config.allow = {"LD_*", "GOOD"};
  config.deny = {"LD_*"};
  CHECK(sanitise_environment({{"LD_PRELOAD", "x"}, {"GOOD", "y"}}, config) == environment{{"GOOD", "y"}});
}

TEST_CASE("names that are empty or no identifiers, and values with NUL, are dropped by both") {
  const environment host = {
      {"", "x"},    {"BASH_FUNC_ls%%", "() { id; }"}, {"A B", "x"},  {"1X", "x"},
      {"X\n", "x"}, {std::string("N\0L", 3), "x"},    {"\xff", "x"}, {"LANG", std::string("a\0b", 3)}};
  environment_config config;
  config.allow = {"*"};
  std::vector<dropped_variable> dropped;
  CHECK(sanitise_environment(host, config, &dropped).empty());
  CHECK(dropped.size() == host.size());
  CHECK(strip_injection(host, config).empty());
}

TEST_CASE("an allowed name whose value is a secret is dropped") {
  for (const std::string value :
       {"ghp_abcdefghijklmnop", "gho_x", "ghs_x", "github_pat_11AA", "AKIAIOSFODNN7EXAMPLE", "xoxb-1-2",
        "text -----BEGIN OPENSSH PRIVATE KEY----- text", "eyJhbGciOi.eyJzdWIiOi.c2ln",
        "https://user:pw@host/x", "postgres://token@host/db", "glpat-x", "sk-ant-x", "npm_x"})
    CHECK_MESSAGE(!survives("LANG", value), value);
  CHECK(survives("LANG", "https://host/x"));
}

TEST_CASE("a name that says secret is dropped even where it is allowed") {
  environment_config config = shipped();
  config.allow = {"*X"};
  for (const std::string name : {"MY_TOKEN_X", "my_token_X", "DB_PASSWORD_X", "API_KEY_X", "SESSION_X",
                                 "COOKIE_X", "SENTRY_DSN_X", "OAUTH_X", "CREDENTIALS_X", "PRIVATE_X"})
    CHECK_MESSAGE(sanitise_environment({{name, "v"}}, config).empty(), name);
  CHECK(sanitise_environment({{"PLAIN_X", "v"}}, config).size() == 1);
}

TEST_CASE("reasons never contain a value, and names that are no identifiers are quoted") {
  std::vector<dropped_variable> dropped;
  sanitise_environment({{"LD_PRELOAD", "hunter2"}, {"A\x1b[31m", "hunter2"}, {"LANG", "ghp_hunter2"}},
                       shipped(), &dropped);
  REQUIRE(dropped.size() == 3);
  for (const auto& d : dropped) {
    CHECK(d.reason.find("hunter2") == std::string::npos);
    CHECK(d.name.find('\x1b') == std::string::npos);
  }
}

TEST_CASE("callers' own variables pass where they inject nothing") {
  const environment host = {{"MY_SETTING", "1"}, {"MODEL_API_KEY", "k"}, {"NODE_OPTIONS", "--require /x"}};
  CHECK(strip_injection(host, shipped()) == environment{{"MODEL_API_KEY", "k"}, {"MY_SETTING", "1"}});
}

TEST_CASE("the host's GIT_SSH_COMMAND is stripped, and ours can be added afterwards") {
  auto env = strip_injection({{"GIT_SSH_COMMAND", "evil"}}, shipped());
  CHECK_FALSE(env.contains("GIT_SSH_COMMAND"));
  env["GIT_SSH_COMMAND"] = "ssh -o ProxyCommand='ours %h %p'";
  CHECK(env.at("GIT_SSH_COMMAND").starts_with("ssh -o"));
}
