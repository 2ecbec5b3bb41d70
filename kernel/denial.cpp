#include "denial.hpp"

#include "json_reader.hpp"

namespace ccbox {

result<sandbox_violation> violation_of_denial(std::string_view json, const agent_capabilities& capabilities) {
  const auto value = parse_json(json);
  if (!value) return value.error();
  std::string host;
  std::uint64_t port = 0;
  std::optional<error> failure;
  json_object_reader reader(*value, "", failure);
  reader.required("host", host);
  reader.required("port", port);
  if (!failure && port > 0xffff) failure = json_error("port", "is no port");
  if (failure) return *failure;
  const bool is_v6 = host.find(':') != host.npos && !host.starts_with('[');
  sandbox_violation violation;
  violation.action = network_action;
  violation.target = host.empty() ? "*" : (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
  if (!capabilities.network) violation.suggested_capability = "canAccessNetwork";
  violation.raw = std::string(json);
  return violation;
}

result<sandbox_violation> violation_of_report(std::string_view type, std::string_view json,
                                              const agent_capabilities& capabilities) {
  if (type == "denial") return violation_of_denial(json, capabilities);
  if (type != "violation")
    return error{error_code::invalid_argument, "there is no event of type " + quoted_excerpt(type), {}};
  const auto value = parse_json(json);
  if (!value) return value.error();
  return sandbox_violation_from_json(*value);
}

}  // namespace ccbox
