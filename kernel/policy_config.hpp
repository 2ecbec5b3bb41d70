// config/policy.yaml: the shipped policy is data. Loading is strict, errors carry file:line:column.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "result.hpp"
#include "rule_bits.hpp"

namespace ccbox {

// When a name may be made all the same.
enum class name_condition {
  none,
  git_config,  // `vetted: git-config`: if it is configuration of git that can do no harm
  is_new,      // `vetted: new`: if it is not there at the start
};

// A path or glob of the config with the reason that explain prints. `~` is the caller's home.
struct config_entry {
  std::string pattern;
  std::string reason;
  std::string where;                                // file:line:column
  name_condition condition = name_condition::none;  // name_deny

  bool operator==(const config_entry&) const = default;
};

struct environment_config {
  std::vector<std::string> allow;  // names, `LC_*` globs: the allow-list the environment is built from
  std::vector<std::string> deny;   // names and globs dropped whatever the allow-list says; case-insensitive
  std::vector<std::string> secret_names;   // substrings of names
  std::vector<std::string> secret_values;  // prefixes or globs of values, e.g. "ghp_*", "*-----BEGIN*"

  bool operator==(const environment_config&) const = default;
};

struct policy_config {
  std::string file;
  // Rule bits the standard dispatch policy requires, by platform.
  rule_bits required_linux = 0;
  rule_bits required_macos = 0;
  std::vector<config_entry> system_read;  // Linux: host paths bound read-only for every program
  std::vector<config_entry> read_deny;    // secrets
  std::vector<config_entry> write_deny;   // fixed paths, e.g. ~/.bashrc
  std::vector<config_entry> name_deny;    // `*.key`: a name; `**/.git/hooks/*`: a path below a writable root
  std::vector<config_entry> name_exempt;  // `**/.git/hooks/*.sample`
  std::vector<config_entry> exec_deny;    // always-dangerous programs
  std::size_t max_existing_matches = 2000;  // more existing files that match name_deny than this: refuse
  environment_config environment;

  bool operator==(const policy_config&) const = default;
};

// `path` empty: the installed one, then the source tree's (see paths.hpp).
result<policy_config> load_policy_config(const std::string& path);
result<policy_config> parse_policy_config(std::string_view text, const std::string& name);

}  // namespace ccbox
