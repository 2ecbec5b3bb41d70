#include <algorithm>
#include <charconv>

#include "service.hpp"

namespace ccbox::server {

result<std::shared_ptr<session>> session_of(const service& s, const api_request& request) {
  const std::string& id = request.captured.at("id");
  if (auto found = s.port.find(id)) return found;
  return error{error_code::not_found, "there is no session " + quoted(id.substr(0, 200)),
               "GET /v1/sandboxes lists them"};
}

result<void> only_parameters(const api_request& request, std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : request.query)
    if (std::find(known.begin(), known.end(), name) == known.end())
      return error{error_code::invalid_argument, "unknown parameter " + quoted(name.substr(0, 200)), ""};
  return {};
}

result<std::optional<std::uint64_t>> number_parameter(const api_request& request, const std::string& name,
                                                      std::uint64_t most) {
  const auto found = request.query.find(name);
  if (found == request.query.end()) return std::optional<std::uint64_t>();
  const std::string& text = found->second;
  std::uint64_t value = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (bad != std::errc() || end != text.data() + text.size() || value > most)
    return error{error_code::invalid_argument,
                 "parameter " + name + ": " + quoted(text.substr(0, 200)) + " is no number up to " +
                     std::to_string(most),
                 ""};
  return std::optional(value);
}

}  // namespace ccbox::server
