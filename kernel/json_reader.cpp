#include "json_reader.hpp"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/parse.hpp>
#include <cctype>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "utf8.hpp"

namespace ccbox {

namespace json = boost::json;

namespace {

std::string key_name(std::string_view key) {
  const bool plain = !key.empty() && key.size() <= 60 &&
                     std::all_of(key.begin(), key.end(),
                                 [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; });
  return plain ? std::string(key) : quoted_excerpt(key);
}

// Follows the parser through the text, keeps the path of the key it is at, and stops at a duplicate key.
class duplicate_finder {
 public:
  static constexpr std::size_t max_object_size = -1;
  static constexpr std::size_t max_array_size = -1;
  static constexpr std::size_t max_key_size = -1;
  static constexpr std::size_t max_string_size = -1;
  using code = json::error_code;

  std::string path() const {
    std::string out;
    for (const auto& level : levels_) {
      if (level.is_array) {
        out += "[" + std::to_string(level.index) + "]";
      } else if (level.key) {
        if (!out.empty()) out += '.';
        out += key_name(*level.key);
      }
    }
    return out;
  }
  bool duplicate() const { return duplicate_; }

  bool on_document_begin(code&) { return true; }
  bool on_document_end(code&) { return true; }
  bool on_object_begin(code&) { return begin(false); }
  bool on_object_end(std::size_t, code&) { return end(); }
  bool on_array_begin(code&) { return begin(true); }
  bool on_array_end(std::size_t, code&) { return end(); }
  bool on_key_part(json::string_view part, std::size_t, code&) {
    partial_key_.append(part.data(), part.size());
    return true;
  }
  bool on_key(json::string_view part, std::size_t, code& ec) {
    partial_key_.append(part.data(), part.size());
    auto& level = levels_.back();
    level.key = std::exchange(partial_key_, {});
    if (level.seen.insert(*level.key).second) return true;
    duplicate_ = true;
    ec = boost::system::errc::make_error_code(boost::system::errc::invalid_argument);
    return false;
  }
  bool on_string_part(json::string_view, std::size_t, code&) { return true; }
  bool on_string(json::string_view, std::size_t, code&) { return value_done(); }
  bool on_number_part(json::string_view, code&) { return true; }
  bool on_int64(std::int64_t, json::string_view, code&) { return value_done(); }
  bool on_uint64(std::uint64_t, json::string_view, code&) { return value_done(); }
  bool on_double(double, json::string_view, code&) { return value_done(); }
  bool on_bool(bool, code&) { return value_done(); }
  bool on_null(code&) { return value_done(); }
  bool on_comment_part(json::string_view, code&) { return true; }
  bool on_comment(json::string_view, code&) { return true; }

 private:
  struct container {
    bool is_array = false;
    std::size_t index = 0;
    std::optional<std::string> key;
    std::unordered_set<std::string> seen;
  };
  bool begin(bool is_array) {
    levels_.push_back({is_array, 0, {}, {}});
    return true;
  }
  bool end() {
    levels_.pop_back();
    return value_done();
  }
  bool value_done() {
    if (!levels_.empty() && levels_.back().is_array) ++levels_.back().index;
    return true;
  }

  std::vector<container> levels_;
  std::string partial_key_;
  bool duplicate_ = false;
};

std::string line_and_column(std::string_view text, std::size_t offset) {
  const auto before = text.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto start = before.rfind('\n');
  const auto column = 1 + (start == before.npos ? before.size() : before.size() - start - 1);
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

}  // namespace

std::string quoted_excerpt(std::string_view text) {
  constexpr std::size_t most = 60;
  return text.size() <= most ? quoted(text) : quoted(text.substr(0, most)) + "...";
}

error json_error(std::string_view path, std::string_view what, std::string hint) {
  std::string text(path);
  if (!text.empty()) text += ": ";
  return {error_code::invalid_argument, text + std::string(what), std::move(hint)};
}

result<json::value> parse_json(std::string_view text, json_limits limits) {
  if (text.size() > limits.bytes) {
    return error{
        error_code::too_large,
        "JSON text of " + std::to_string(text.size()) + " bytes: more than " + std::to_string(limits.bytes),
        {}};
  }
  if (text.starts_with("\xef\xbb\xbf"))
    return json_error("", "not valid JSON: it begins with a byte order mark");
  for (std::size_t at = 0, length = 0; at < text.size(); at += length) {
    char32_t point = 0;
    length = utf8_sequence(text.substr(at), point);
    if (length == 0)
      return json_error("", "not valid JSON: not UTF-8 text (" + line_and_column(text, at) + ")");
  }
  json::parse_options options;
  options.max_depth = limits.depth;
  json::basic_parser<duplicate_finder> checker(options);
  json::error_code ec;
  std::size_t used = checker.write_some(false, text.data(), text.size(), ec);
  if (!ec && used < text.size()) ec = json::error::extra_data;
  if (ec) {
    const auto& at = checker.handler();
    if (ec == json::error::too_deep) {
      return error{error_code::too_large,
                   at.path() + ": nested deeper than " + std::to_string(limits.depth) + " levels",
                   {}};
    }
    const std::string what = at.duplicate() ? "duplicate key" : "not valid JSON: " + ec.message();
    return json_error(at.path(), what + " (" + line_and_column(text, used) + ")");
  }
  auto value = json::parse({text.data(), text.size()}, ec, {}, options);
  if (ec) return json_error("", "not valid JSON: " + ec.message());
  return value;
}

std::string_view json_kind(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return "null";
    case json::kind::bool_:
      return "a boolean";
    case json::kind::int64:
    case json::kind::uint64:
    case json::kind::double_:
      return "a number";
    case json::kind::string:
      return "a string";
    case json::kind::array:
      return "an array";
    case json::kind::object:
      return "an object";
  }
  return "something else";
}

json_object_reader::json_object_reader(const json::value& value, std::string path,
                                       std::optional<error>& failure)
    : object_(value.if_object()), path_(std::move(path)), failure_(failure) {
  if (!object_) fail(path_, "must be an object, not " + std::string(json_kind(value)));
}

void json_object_reader::fail(std::string_view path, std::string_view what, std::string hint) {
  if (!failure_) failure_ = json_error(path, what, std::move(hint));
}

std::string json_object_reader::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

const json::value* json_object_reader::find(std::string_view key, bool required) {
  known_.push_back(key);
  if (failure_) return nullptr;
  const auto* member = object_->if_contains({key.data(), key.size()});
  if (!member && required) fail(path_of(key), "is missing");
  return member;
}

void json_object_reader::no_other_keys() {
  if (failure_) return;
  for (const auto& member : *object_) {
    const std::string_view key(member.key().data(), member.key().size());
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    std::string names;
    for (const auto name : known_)
      (names += names.empty() ? "" : ", ") += name;
    return fail(path_of(key_name(key)), "unknown key", "known keys: " + names);
  }
}

void json_object_reader::read(const json::value& value, std::string path, std::string& out) {
  if (const auto* text = value.if_string())
    out.assign(text->data(), text->size());
  else
    fail(path, "must be a string, not " + std::string(json_kind(value)));
}

void json_object_reader::read(const json::value& value, std::string path, bool& out) {
  if (const auto* flag = value.if_bool())
    out = *flag;
  else
    fail(path, "must be true or false, not " + std::string(json_kind(value)));
}

void json_object_reader::read(const json::value& value, std::string path, std::uint64_t& out) {
  if (const auto* small = value.if_int64(); small && *small >= 0)
    out = static_cast<std::uint64_t>(*small);
  else if (const auto* large = value.if_uint64())
    out = *large;
  else if (value.is_number())
    fail(path, "must be a whole number that is not negative and below 2^64");
  else
    fail(path, "must be a number, not " + std::string(json_kind(value)));
}

void json_object_reader::read(const json::value& value, std::string path, double& out) {
  if (!value.is_number()) return fail(path, "must be a number, not " + std::string(json_kind(value)));
  out = value.to_number<double>();
  if (!std::isfinite(out)) fail(path, "is out of range");
}

void json_object_reader::read(const json::value& value, std::string path, std::vector<std::string>& out) {
  const auto* array = value.if_array();
  if (!array) return fail(path, "must be an array of strings, not " + std::string(json_kind(value)));
  out.clear();
  for (std::size_t i = 0; i < array->size() && !failure_; ++i)
    read((*array)[i], path + "[" + std::to_string(i) + "]", out.emplace_back());
}

}  // namespace ccbox
