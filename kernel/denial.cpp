#include "denial.hpp"

#include <boost/json.hpp>

#include "ccbox/glob.hpp"
#include "json_reader.hpp"
#include "utf8.hpp"

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

constexpr std::size_t most_action_bytes = 128;
constexpr std::size_t most_target_bytes = 16 << 10;
constexpr std::size_t most_raw_bytes = 64 << 10;

// The capability that would have allowed it; only what no rule allows can be allowed by one more.
std::optional<std::string> suggestion(std::string_view target, std::string_view reason,
                                      const agent_capabilities& capabilities,
                                      std::span<const withheld_domain> withheld) {
  if (reason == "blocked-by-denylist" || reason == "limit") return std::nullopt;
  if (!capabilities.network) return "canAccessNetwork";
  const auto colon = target.rfind(':');
  for (const auto& each : withheld) {
    const bool has_port = each.pattern.find(':') != each.pattern.npos;
    if (wildcard_match(each.pattern, has_port ? target : target.substr(0, colon), true))
      return each.capability;
  }
  return std::nullopt;
}

// Cut between two characters.
void cut(std::string& text, std::size_t most) {
  if (text.size() <= most) return;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80)
    --most;
  text.resize(most);
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
  reader.optional("count", violation.count);
  const auto action = action_of(operation);
  if (!failure && !action) failure = json_error("operation", "is none that there is");
  if (failure) return *failure;
  violation.action = *action;
  violation.raw = std::string(json);
  make_safe(violation);
  return violation;
}

}  // namespace

void make_safe(sandbox_violation& violation) {
  violation.action = printable(violation.action);
  cut(violation.action, most_action_bytes);
  violation.target = printable(violation.target);
  cut(violation.target, most_target_bytes);
  if (violation.suggested_capability) {
    violation.suggested_capability = printable(*violation.suggested_capability);
    cut(*violation.suggested_capability, most_action_bytes);
  }
  if (violation.raw) {
    violation.raw = json_printable(*violation.raw);
    cut(*violation.raw, most_raw_bytes);
  }
  if (violation.count == 0) violation.count = 1;
}

result<sandbox_violation> violation_of_denial(std::string_view json, const agent_capabilities& capabilities,
                                              std::span<const withheld_domain> withheld) {
  const auto value = parse_json(json);
  if (!value) return value.error();
  if (value->is_object() && value->get_object().contains("path")) return violation_of_file(*value, json);
  sandbox_violation violation;
  std::optional<error> failure;
  json_object_reader reader(*value, "", failure);
  std::string reason;
  read_target(reader, failure, violation.target);
  reader.optional("reason", reason);
  reader.optional("count", violation.count);
  if (failure) return *failure;
  violation.action = network_action;
  violation.suggested_capability = suggestion(violation.target, reason, capabilities, withheld);
  violation.raw = std::string(json);
  make_safe(violation);
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
  auto violation = sandbox_violation_from_json(*value);
  if (violation) make_safe(*violation);
  return violation;
}

result<sandbox_event> event_of_report(std::string_view type, std::string_view json,
                                      const agent_capabilities& capabilities,
                                      std::span<const withheld_domain> withheld) {
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
  auto violation = type == "denial" ? violation_of_denial(json, capabilities, withheld) : violation_of(json);
  if (!violation) return violation.error();
  event.type = sandbox_event_type::violation;
  event.violation = std::move(*violation);
  return event;
}

}  // namespace ccbox
