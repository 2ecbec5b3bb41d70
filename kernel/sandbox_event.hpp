// One event of a session: the specification's event types and SandboxViolation, with their JSON forms.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "result.hpp"

namespace ccbox {

// `unreachable` is ours, beside the specification's.
enum class sandbox_event_type {
  stdout_data,
  stderr_data,
  exit,
  starting,
  ready,
  killed,
  violation,
  unreachable
};
// "stdout", "stderr", "exit", "starting", "ready", "killed", "violation", "unreachable".
std::string_view to_string(sandbox_event_type type);
std::optional<sandbox_event_type> sandbox_event_type_from_name(std::string_view name);

enum class kill_reason { oom, timeout, manual };
std::string_view to_string(kill_reason reason);

struct sandbox_violation {
  std::string action;  // the denied verb, e.g. "file-write-create"
  std::string target;  // path or host
  std::optional<std::string> suggested_capability;
  std::optional<std::string> raw;
  std::uint64_t count = 1;  // ours: refused actions that it stands for
  bool operator==(const sandbox_violation&) const = default;
};

// A destination that the session may reach, and whose proxies could not: no violation.
struct sandbox_unreachable {
  std::string target;       // host:port
  std::string reason;       // a word of the egress plugin: "dns-no-such-name", "connection-refused"
  std::uint64_t count = 1;  // attempts counted together
  bool operator==(const sandbox_unreachable&) const = default;
};

struct sandbox_event {
  std::string session_id;
  std::uint64_t sequence = 0;  // per session, from 1, without gaps; given by the bus
  sandbox_event_type type = sandbox_event_type::starting;
  std::uint64_t exec_id = 0;                   // the command it belongs to; 0: the session itself
  std::string data;                            // stdout, stderr: raw bytes
  int exit_code = 0;                           // exit: the command's own, or 128 + signal
  std::optional<kill_reason> reason;           // killed
  std::optional<sandbox_violation> violation;  // violation
  std::optional<sandbox_unreachable> unreachable;
};

// sessionId, sequence, type, execId unless 0, and what the type carries: data, exitCode, reason, violation or
// unreachable.
// Bytes that are not UTF-8 go as {"data": base64, "encoding": "base64"}; text as {"data": "..."}.
boost::json::value to_json(const sandbox_event& event);
boost::json::value to_json(const sandbox_violation& violation);
// `count` is there where it is not 1. Strict as sandbox_spec_from_json is: it reads what plugins emit. Bytes
// of target and raw that are not UTF-8 have become U+FFFD on the way into JSON.
result<sandbox_violation> sandbox_violation_from_json(const boost::json::value& value);

}  // namespace ccbox
