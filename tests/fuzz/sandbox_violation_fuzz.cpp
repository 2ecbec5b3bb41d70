#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "fuzz/target.hpp"
#include "json_reader.hpp"
#include "sandbox_event.hpp"

namespace {

// What a plugin emits, and what a sandboxed process prints: the same bytes as both.
void run(std::string_view text) {
  using ccbox::error_code;
  ccbox::sandbox_event event;
  event.type = ccbox::sandbox_event_type::stdout_data;
  event.session_id = std::string(text.substr(0, 8));
  event.data = std::string(text);
  const auto shown = ccbox::parse_json(boost::json::serialize(ccbox::to_json(event)), {64 << 20, 4});
  fuzz::require(shown.has_value(), "any output makes valid JSON");
  const auto* encoding = shown->as_object().if_contains("encoding");
  fuzz::require((encoding == nullptr) == ccbox::is_utf8(text), "bytes are encoded if they are no text");
  if (!encoding)
    fuzz::require(shown->at("data").as_string() == text, "text is written as it is");
  else
    fuzz::require(shown->at("data").as_string().size() == (text.size() + 2) / 3 * 4, "base64 has its length");

  const auto value = ccbox::parse_json(text);
  if (!value)
    return fuzz::require_good_error(value.error(), {error_code::invalid_argument, error_code::too_large});
  const auto violation = ccbox::sandbox_violation_from_json(*value);
  if (!violation) return fuzz::require_good_error(violation.error(), {error_code::invalid_argument});
  const auto again = ccbox::sandbox_violation_from_json(ccbox::to_json(*violation));
  fuzz::require(again.has_value() && *again == *violation, "a violation comes back from JSON equal");
}

const fuzz::registered target("sandbox_violation", run);

}  // namespace
