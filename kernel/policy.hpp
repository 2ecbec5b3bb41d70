// The spec resolved against host, mode, capabilities and config: concrete rules, each with its reason.
//
// compile_policy reads the host (it resolves paths and looks for existing files that match the name rules)
// and changes nothing. One policy feeds both dispatch seams. It is a value: immutable once compiled.
//
// Order of rules: mounts first (a mount inside another comes after it, so applying in order gives the most
// specific one the last word), then read denies, write denies, name denies, exempts, exec rules. A read deny
// inside a write deny stays a read deny: a backend that re-binds a write-denied directory masks what is
// denied in it afterwards.
//
// What a deny covers: its path and everything below it. A read deny denies writing too (the write deny of the
// same path is listed only where that matters: on macOS and where fs_read_deny is waived). A deny that is a
// glob is listed for macOS alone; on Linux its existing matches are rules of their own (origin
// existing_match) and its future ones name denies.
//
// A deny has one rule for each place that shows it, and one without guest_path if no mount shows it. The
// literal spelling comes first; where it runs through a symbolic link its type is symlink and the rule for
// the target (is_target) follows: only the target can be masked or bound, the link's own name is kept by a
// name deny.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "egress_resolver.hpp"
#include "environment.hpp"
#include "host.hpp"
#include "path_spelling.hpp"
#include "policy_config.hpp"
#include "result.hpp"
#include "rule_bits.hpp"
#include "sandbox_spec.hpp"

namespace ccbox {

enum class rule_kind {
  mount = 1,
  read_deny,
  write_deny,
  name_deny,
  name_exempt,
  exec_deny,
  exec_grant
};  // = ABI
std::string_view to_string(rule_kind kind);

// Where a rule comes from: "why" for explain and check.
enum class rule_origin {
  system,
  spec,
  mode,
  runner_state,
  protected_path,
  secret,
  mandatory,
  existing_match
};
std::string_view to_string(rule_origin origin);
std::string_view to_string(name_condition condition);  // as policy.yaml spells it; empty: none

struct rule {
  rule_kind kind = rule_kind::mount;
  rule_origin origin = rule_origin::spec;
  rule_bits bit = 0;
  // Absolute host path; `//`, `.` and a trailing `/` removed. NAME rules: see `glob`.
  std::string path;
  // Where it shows inside; empty: nowhere. NAME rules: the directory they are anchored to, a writable mount
  // or one in it that a link leads to.
  std::string guest_path;
  bool read_only = false;  // mount
  bool glob = false;
  bool is_target = false;                           // the symlink-resolved spelling of the rule before it
  name_condition condition = name_condition::none;  // name_deny with `glob`
  path_type type = path_type::missing;
  // NAME rules with `glob`: `path` is relative to guest_path (see glob.hpp); without: one absolute path
  // *inside*.
  std::string reason;  // one line, e.g. "mandatory deny: git runs what is in hooks (config/policy.yaml:40:5)"
};

struct policy {
  sandbox_spec spec;
  std::string backend_request;  // "" (the host's best), a plugin's name, or native | microvm | none
  std::vector<rule> rules;
  rule_bits required = 0;  // waived bits are not in it
  rule_bits waived = 0;
  bool network_allowed = true;  // spec and capability; off: the proxies start with an empty allowlist
  resolved_egress egress;
  std::string workdir;  // inside
  std::string home;     // inside, private to the session
  std::string tmpdir;
  std::vector<std::string> warnings;  // e.g. one a waived bit
};

// Errors name the object: a mount that is missing, relative, not a directory where one is meant, a magic
// link; a workdir that no mount covers; too many existing matches.
result<policy> compile_policy(const sandbox_spec& spec, const host_facts& host, const policy_config& config,
                              const egress_sources& egress = {});

// Where a session with proxies finds the ProxyCommand helper.
constexpr std::string_view net_connect_inside = "/run/ccbox/bin/net-connect";

// The environment for the commands of this policy: built from the caller's by allow-list, with the deny list
// as a second fence, then HOME, TMPDIR, PATH and XDG_* of the session. `none` through the port inherits
// instead.
environment command_environment(const policy& p, const host_facts& host, const policy_config& config);

// One way to use a path, by the call that does it.
struct path_operation {
  std::string_view name;  // "create"
  enum class verdict { succeed, fail, depend } may = verdict::fail;
  std::string why;                  // one line: the errno, or what it depends on; may be empty
  std::optional<std::size_t> rule;  // that says so; an index into policy.rules
};

// `ccbox check path`: may it be read, written, created, executed, and which rules say so.
struct path_answer {
  bool visible = false;
  bool readable = false;
  bool writable = false;                    // an existing file there; false if the file may not be changed
  bool creatable = false;                   // a new file of that name
  std::vector<std::size_t> deciding_rules;  // indices into policy.rules, the most specific last
  std::string explanation;                  // one line for people

  std::string resolved;  // where the path leads inside; empty: it is no path
  bool exists = false, is_directory = false;
  bool unconfined = false;  // there are no rules
  bool is_private = false;  // memory of the session, or a view that the enclosure makes of itself
  // The name rule that counts there, also for what a mount holds besides; and the one that lets the name
  // through.
  std::optional<std::size_t> name_rule, exempt_rule;
  enum name_condition name_condition = name_condition::none;  // of that rule
  std::vector<path_operation> operations;                     // path_operations.hpp
};
path_answer check_path(const policy& p, std::string_view path);

}  // namespace ccbox
