// What the port returns for a launched sandbox: the specification's SandboxHandle, SandboxBackend and
// SandboxState, with their JSON forms and the state machine.
#pragma once

#include <boost/json/fwd.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "result.hpp"

namespace ccbox {

enum class sandbox_backend { native, microvm, none };
std::string_view to_string(sandbox_backend backend);
// For stored values, as the specification says: null or unknown gives none, "docker" gives native. Never use
// it to read what a caller asks for: there an unknown backend is an error.
sandbox_backend sandbox_backend_from_name(std::optional<std::string_view> name);

enum class sandbox_state { created, warm, active, suspended, destroyed, error };
std::string_view to_string(sandbox_state state);
std::optional<sandbox_state> sandbox_state_from_name(std::string_view name);

// created → warm | destroyed | error; warm ⇄ active; warm ⇄ suspended;
// active | warm | suspended → destroyed | error; error → destroyed. Everything else is illegal, staying too.
bool is_legal_transition(sandbox_state from, sandbox_state to);

struct sandbox_handle {
  std::string session_id;
  sandbox_backend backend = sandbox_backend::none;
  sandbox_state state = sandbox_state::created;
  std::optional<error> failure;                // JSON "error": {code, what, hint}; absent if none
  std::map<std::string, std::string> details;  // plugin, pid, workdir, without, enforced, ...: JSON "details"
};
boost::json::value to_json(const sandbox_handle& handle);
// {code, what, hint}, here and wherever else an error is told in JSON.
boost::json::value to_json(const error& e);

// Moves the state or returns illegal_state naming both states.
result<void> transition(sandbox_handle& handle, sandbox_state to);

}  // namespace ccbox
