#include "denial.hpp"

#include <boost/json.hpp>

#include "json_reader.hpp"

namespace ccbox {

namespace {

// Reads host and port; `*` where there is no host.
void read_target(json_object_reader& reader, std::optional<error>& failure, std::string& target) {
  std::string host;
  std::uint64_t port = 0;
  reader.required("host", host);
  reader.required("port", port);
  if (!failure && port > 0xffff) failure = json_error("port", "is no port");
  const bool is_v6 = host.find(':') != host.npos && !host.starts_with('[');
  target = host.empty() ? "*" : (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

// The verbs that macOS has for the same.
std::optional<std::string_view> action_of(std::string_view operation) {
  if (operation == "create" || operation == "mkdir" || operation == "mknod" || operation == "symlink" ||
      operation == "rename")
    return "file-write-create";
  if (operation == "write") return "file-write-data";
  if (operation == "remove") return "file-write-unlink";
  if (operation == "link") return "file-link";
  return std::nullopt;
}

result<sandbox_violation> violation_of_file(const boost::json::value& value, std::string_view json) {
  std::string operation;
  sandbox_violation violation;
  std::optional<error> failure;
  json_object_reader reader(value, "", failure);
  reader.required("operation", operation);
  reader.required("path", violation.target);
  const auto action = action_of(operation);
  if (!failure && !action) failure = json_error("operation", "is none that there is");
  if (failure) return *failure;
  violation.action = *action;
  violation.raw = std::string(json);
  return violation;
}

}  // namespace

result<sandbox_violation> violation_of_denial(std::string_view json, const agent_capabilities& capabilities) {
  const auto value = parse_json(json);
  if (!value) return value.error();
  if (value->is_object() && value->get_object().contains("path")) return violation_of_file(*value, json);
  sandbox_violation violation;
  std::optional<error> failure;
  json_object_reader reader(*value, "", failure);
  read_target(reader, failure, violation.target);
  if (failure) return *failure;
  violation.action = network_action;
  if (!capabilities.network) violation.suggested_capability = "canAccessNetwork";
  violation.raw = std::string(json);
  return violation;
}

result<sandbox_unreachable> unreachable_of(std::string_view json) {
  const auto value = parse_json(json);
  if (!value) return value.error();
  sandbox_unreachable out;
  std::optional<error> failure;
  json_object_reader reader(*value, "", failure);
  read_target(reader, failure, out.target);
  reader.required("reason", out.reason);
  reader.optional("count", out.count);
  if (failure) return *failure;
  return out;
}

static result<sandbox_violation> violation_of(std::string_view json) {
  const auto value = parse_json(json);
  if (!value) return value.error();
  return sandbox_violation_from_json(*value);
}

result<sandbox_event> event_of_report(std::string_view type, std::string_view json,
                                      const agent_capabilities& capabilities) {
  sandbox_event event;
  if (type == "unreachable") {
    auto found = unreachable_of(json);
    if (!found) return found.error();
    event.type = sandbox_event_type::unreachable;
    event.unreachable = std::move(*found);
    return event;
  }
  if (type != "denial" && type != "violation")
    return error{error_code::invalid_argument, "there is no event of type " + quoted_excerpt(type), {}};
  auto violation = type == "denial" ? violation_of_denial(json, capabilities) : violation_of(json);
  if (!violation) return violation.error();
  event.type = sandbox_event_type::violation;
  event.violation = std::move(*violation);
  return event;
}

}  // namespace ccbox
