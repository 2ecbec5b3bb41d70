#include "sandbox_handle.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "utf8.hpp"

namespace ccbox {

namespace json = boost::json;

std::string_view to_string(sandbox_backend backend) {
  switch (backend) {
    case sandbox_backend::native:
      return "native";
    case sandbox_backend::microvm:
      return "microvm";
    case sandbox_backend::none:
      return "none";
  }
  return "none";
}

sandbox_backend sandbox_backend_from_name(std::optional<std::string_view> name) {
  if (name == "native" || name == "docker") return sandbox_backend::native;
  if (name == "microvm") return sandbox_backend::microvm;
  return sandbox_backend::none;
}

std::string_view to_string(sandbox_state state) {
  switch (state) {
    case sandbox_state::created:
      return "created";
    case sandbox_state::warm:
      return "warm";
    case sandbox_state::active:
      return "active";
    case sandbox_state::suspended:
      return "suspended";
    case sandbox_state::destroyed:
      return "destroyed";
    case sandbox_state::error:
      return "error";
  }
  return "error";
}

std::optional<sandbox_state> sandbox_state_from_name(std::string_view name) {
  using enum sandbox_state;
  for (const auto state : {created, warm, active, suspended, destroyed, error})
    if (to_string(state) == name) return state;
  return std::nullopt;
}

bool is_legal_transition(sandbox_state from, sandbox_state to) {
  using enum sandbox_state;
  const bool ends = to == destroyed || to == error;
  switch (from) {
    case created:
      return to == warm || ends;
    case warm:
      return to == active || to == suspended || ends;
    case active:
    case suspended:
      return to == warm || ends;
    case error:
      return to == destroyed;
    case destroyed:
      return false;
  }
  return false;
}

json::value to_json(const sandbox_handle& handle) {
  json::object out;
  out["sessionId"] = to_utf8(handle.session_id);
  out["backend"] = to_string(handle.backend);
  out["state"] = to_string(handle.state);
  if (handle.failure) out["error"] = to_json(*handle.failure);
  json::object details;
  for (const auto& [key, value] : handle.details)
    details[to_utf8(key)] = to_utf8(value);
  out["details"] = std::move(details);
  return out;
}

json::value to_json(const error& e) {
  return {{"code", to_string(e.code)}, {"what", to_utf8(e.what)}, {"hint", to_utf8(e.hint)}};
}

result<void> transition(sandbox_handle& handle, sandbox_state to) {
  if (!is_legal_transition(handle.state, to)) {
    return error{error_code::illegal_state,
                 "session " + quoted(handle.session_id) + " cannot go from " +
                     std::string(to_string(handle.state)) + " to " + std::string(to_string(to)),
                 {}};
  }
  handle.state = to;
  return {};
}

}  // namespace ccbox
