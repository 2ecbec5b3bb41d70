// Strict reading of JSON: text to value, object to fields. Every error names the key
// ("bindMounts[2].hostPath") and is invalid_argument, but for what is over a limit: that is too_large.
#pragma once

#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "result.hpp"

namespace ccbox {

// RFC 8259 and nothing else: valid UTF-8, no comments, no trailing commas, no byte order mark. Duplicate keys
// are errors, which boost::json::parse would not notice. `depth` counts nested arrays and objects.
struct json_limits {
  std::size_t bytes = 1 << 20;
  std::size_t depth = 32;
};
result<boost::json::value> parse_json(std::string_view text, json_limits limits = {});

// "an object", "a string", "null", ...
std::string_view json_kind(const boost::json::value& value);

// quoted(), cut after 60 bytes: text from outside does not make a message unreadable.
std::string quoted_excerpt(std::string_view text);

// "path: what"; without the prefix where path is empty.
error json_error(std::string_view path, std::string_view what, std::string hint = {});

// Reads one object, field by field; borrows it and `failure`. The first error is kept in `failure` and later
// reads do nothing, so callers check once, at the end.
class json_object_reader {
 public:
  json_object_reader(const boost::json::value& value, std::string path, std::optional<error>& failure);

  // Required: the key must be there. Optional: an absent key leaves `out` alone. For an std::optional, null
  // is absent.
  template <class T>
  void required(std::string_view key, T& out) {
    if (const auto* member = find(key, true)) read(*member, path_of(key), out);
  }
  template <class T>
  void optional(std::string_view key, T& out) {
    if (const auto* member = find(key, false)) read(*member, path_of(key), out);
  }
  template <class T>
  void optional(std::string_view key, std::optional<T>& out) {
    const auto* member = find(key, false);
    if (member && !member->is_null()) read(*member, path_of(key), out.emplace());
  }

  // The member itself, for nested objects; nullptr if absent or after an error.
  const boost::json::value* find(std::string_view key, bool required);
  std::string path_of(std::string_view key) const;

  // An error at the first key that was never asked for.
  void no_other_keys();

 private:
  void read(const boost::json::value& value, std::string path, std::string& out);
  void read(const boost::json::value& value, std::string path, bool& out);
  void read(const boost::json::value& value, std::string path,
            std::uint64_t& out);  // no fraction, no exponent
  void read(const boost::json::value& value, std::string path, double& out);
  void read(const boost::json::value& value, std::string path, std::vector<std::string>& out);
  void fail(std::string_view path, std::string_view what, std::string hint = {});

  const boost::json::object* object_ = nullptr;
  std::string path_;
  std::optional<error>& failure_;
  std::vector<std::string_view> known_;
};

}  // namespace ccbox
