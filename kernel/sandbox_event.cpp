#include "sandbox_event.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "json_reader.hpp"
#include "utf8.hpp"

namespace ccbox {

namespace json = boost::json;

namespace {

std::string base64(std::string_view bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = (group << 8) | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0);
    for (std::size_t k = 0; k < 4; ++k)
      out += k <= count ? digits[(group >> (18 - 6 * k)) & 63] : '=';
  }
  return out;
}

}  // namespace

std::string_view to_string(sandbox_event_type type) {
  switch (type) {
    case sandbox_event_type::stdout_data:
      return "stdout";
    case sandbox_event_type::stderr_data:
      return "stderr";
    case sandbox_event_type::exit:
      return "exit";
    case sandbox_event_type::starting:
      return "starting";
    case sandbox_event_type::ready:
      return "ready";
    case sandbox_event_type::killed:
      return "killed";
    case sandbox_event_type::violation:
      return "violation";
    case sandbox_event_type::unreachable:
      return "unreachable";
  }
  return "violation";
}

std::optional<sandbox_event_type> sandbox_event_type_from_name(std::string_view name) {
  using enum sandbox_event_type;
  for (const auto type : {stdout_data, stderr_data, exit, starting, ready, killed, violation, unreachable})
    if (to_string(type) == name) return type;
  return std::nullopt;
}

std::string_view to_string(kill_reason reason) {
  switch (reason) {
    case kill_reason::oom:
      return "oom";
    case kill_reason::timeout:
      return "timeout";
    case kill_reason::manual:
      return "manual";
  }
  return "manual";
}

json::value to_json(const sandbox_event& event) {
  json::object out;
  out["sessionId"] = to_utf8(event.session_id);
  out["sequence"] = event.sequence;
  out["type"] = to_string(event.type);
  if (event.exec_id != 0) out["execId"] = event.exec_id;
  switch (event.type) {
    case sandbox_event_type::stdout_data:
    case sandbox_event_type::stderr_data:
      if (is_utf8(event.data)) {
        out["data"] = event.data;
      } else {
        out["data"] = base64(event.data);
        out["encoding"] = "base64";
      }
      break;
    case sandbox_event_type::exit:
      out["exitCode"] = event.exit_code;
      break;
    case sandbox_event_type::killed:
      if (event.reason) out["reason"] = to_string(*event.reason);
      break;
    case sandbox_event_type::violation:
      if (event.violation) out["violation"] = to_json(*event.violation);
      break;
    case sandbox_event_type::unreachable:
      if (event.unreachable)
        out["unreachable"] = json::object{{"target", to_utf8(event.unreachable->target)},
                                          {"reason", to_utf8(event.unreachable->reason)},
                                          {"count", event.unreachable->count}};
      break;
    case sandbox_event_type::starting:
    case sandbox_event_type::ready:
      break;
  }
  return out;
}

json::value to_json(const sandbox_violation& violation) {
  json::object out;
  out["action"] = to_utf8(violation.action);
  out["target"] = to_utf8(violation.target);
  if (violation.suggested_capability) out["suggestedCapability"] = to_utf8(*violation.suggested_capability);
  if (violation.raw) out["raw"] = to_utf8(*violation.raw);
  if (violation.count != 1) out["count"] = violation.count;
  return out;
}

result<sandbox_violation> sandbox_violation_from_json(const json::value& value) {
  sandbox_violation violation;
  std::optional<error> failure;
  json_object_reader reader(value, "", failure);
  reader.required("action", violation.action);
  reader.required("target", violation.target);
  reader.optional("suggestedCapability", violation.suggested_capability);
  reader.optional("raw", violation.raw);
  reader.optional("count", violation.count);
  reader.no_other_keys();
  if (!failure && violation.action.empty()) failure = json_error("action", "must not be empty");
  if (!failure && violation.count == 0) failure = json_error("count", "must be at least 1");
  if (failure) return *failure;
  return violation;
}

}  // namespace ccbox
