// What a caller asks for: the specification's SandboxSpec, with its JSON form.
//
// The JSON spellings (camelCase) are the same in the API, in `--json` output and in files. Unknown keys,
// wrong types and malformed values are errors that name the key. Whether paths exist is the policy compiler's
// question, not this file's.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "result.hpp"
#include "rule_bits.hpp"

namespace ccbox {

struct sandbox_bind_mount {
  std::string host_path;   // absolute
  std::string guest_path;  // absolute; empty in C++ means the same as host_path
  bool read_only = false;
  bool operator==(const sandbox_bind_mount&) const = default;
};

// `chat` keeps bind mounts writable; the others make them read-only.
enum class sandbox_mode { chat, review, plan, orchestrate };
std::string_view to_string(sandbox_mode mode);
std::optional<sandbox_mode> sandbox_mode_from_name(std::string_view name);

// The defaults are the specification's safeDefault.
struct agent_capabilities {
  bool network = true;           // "canAccessNetwork"
  bool call_github_api = false;  // "canCallGitHubApi"
  bool push = false;             // "canPush"
  bool call_ticketing = false;   // "canCallTicketing"
  bool operator==(const agent_capabilities&) const = default;
};

// Absent means unlimited; 0 is refused. Asking for a limit makes the rule bit resource_limits required.
struct resource_limits {
  std::optional<std::uint64_t> memory_bytes;     // "memoryBytes", 4 MiB at least: no program starts with less
  std::optional<double> cpus;                    // "cpus", 0.01 to 8192, in thousandths: 1.5 = 1½ processors
  std::optional<std::uint64_t> processes;        // "processes"
  std::optional<std::uint64_t> file_size_bytes;  // "fileSizeBytes"
  std::optional<std::uint64_t> wall_time_ms;     // "wallTimeMs", of the whole session; at most a century
  bool any() const { return memory_bytes || cpus || processes || file_size_bytes || wall_time_ms; }
  bool operator==(const resource_limits&) const = default;
};

struct sandbox_spec {
  std::string session_id;  // [A-Za-z0-9._-]{1,64}, not starting with '.' or '-'
  std::string workspace_id;
  std::optional<std::string> agent_id;
  std::vector<sandbox_bind_mount> bind_mounts;
  bool network_enabled = true;
  std::vector<std::string> egress_allowlist;
  std::optional<std::string> guest_workdir;
  sandbox_mode mode = sandbox_mode::chat;
  agent_capabilities capabilities;
  std::vector<std::string> protected_paths;
  std::vector<std::string> runner_state_dirs;
  std::vector<std::string> exec_grant_roots;
  // Our additions.
  resource_limits limits;
  std::optional<std::string> backend;  // a plugin's name, native, microvm, none; absent: the host's best
  std::vector<std::string> without;    // names of rule bits this launch gives up

  bool operator==(const sandbox_spec&) const = default;
};

// Strict: unknown keys, duplicates, wrong types, NUL bytes, relative paths, bad session ids, limits out of
// range and unknown or unwaivable rule names are invalid_argument, each naming the JSON key
// ("bindMounts[2].hostPath"). sessionId, workspaceId and bindMounts must be there; null is the same as absent
// for what may be absent altogether (agentId, guestWorkdir, backend, each limit). An absent guestPath becomes
// hostPath.
result<sandbox_spec> sandbox_spec_from_json(const boost::json::value& value);
// Parses the text too; refuses text over 1 MiB and nesting over 32 levels (too_large).
result<sandbox_spec> parse_sandbox_spec(std::string_view json_text);
// A spec that came from JSON comes back equal. JSON is UTF-8, so a path that is not cannot be written in it:
// its malformed bytes become U+FFFD. Such paths reach ccbox through the command line or the C++ interface
// only.
boost::json::value to_json(const sandbox_spec& spec);

// The same checks for a spec that was filled in from C++ (the CLI). Paths may hold any bytes but NUL. A
// string is not empty where it is present, workspace_id, agent_id and guest_path excepted; limits are at
// least 1.
result<void> validate(const sandbox_spec& spec);

// The waived bits of `spec.without`; validate() has checked the names.
rule_bits waived_bits(const sandbox_spec& spec);

}  // namespace ccbox
