#include "yaml_document.hpp"

#include <unistd.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <sstream>

#include "trusted_file.hpp"
#include "utf8.hpp"

namespace ccbox {

namespace {

constexpr std::size_t max_file_bytes = 4 << 20;
constexpr int max_nesting = 32;
constexpr std::size_t max_values = 200'000;  // in the file, and again by aliases

struct position {
  int line = 1;
  int column = 1;
};

position position_of(const YAML::Mark& mark) {
  return {mark.line + 1, mark.column + 1};
}

std::string place(const std::string& name, position at) {
  return name + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
}

error refusal(const std::string& where, std::string_view what, std::string hint = {}) {
  return {error_code::invalid_argument, where + ": " + std::string(what), std::move(hint)};
}

}  // namespace

struct yaml_value::node {
  struct member {
    std::string key;
    position at;
    std::shared_ptr<const node> value;
  };

  kind type = kind::null;
  std::shared_ptr<const std::string> file;
  position at;
  std::string text;  // scalar
  bool plain = false;
  std::vector<std::shared_ptr<const node>> items;
  std::vector<member> members;
  int height = 0;          // levels of nesting below
  std::size_t weight = 1;  // values in it, aliases expanded
};

namespace {

using node = yaml_value::node;
using kind = yaml_value::kind;

// Leaves the parser at the first thing that we refuse.
struct refused {
  error reason;
};

// Builds the tree from the parser's events: that keeps every position, sees duplicate keys before they are
// merged away, and stops nesting and alias bombs before they cost anything.
class tree_builder final : public YAML::EventHandler {
 public:
  explicit tree_builder(std::shared_ptr<const std::string> file) : file_(std::move(file)) {}

  std::shared_ptr<const node> take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (root_)
      refuse(position_of(mark), "a second document in the file",
             "one document a file: remove the '---' or '...' and what follows it");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    auto value = make(kind::null, mark);
    // A missing value stands, for the parser, where the next token does.
    if (!open_.empty() && open_.back().key && value->at.line != open_.back().key_at.line)
      value->at = open_.back().key_at;
    finish(std::move(value), anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    auto value = make(kind::scalar, mark);
    refuse_tag(tag, value->at);
    if (text.find('\0') != std::string::npos) refuse(value->at, "a NUL character in a value");
    value->text = text;
    value->plain = tag == "?";
    finish(std::move(value), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto at = position_of(mark);
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) refuse(at, "an alias inside the value that it names");
    alias_weight_ += found->second->weight;
    if (alias_weight_ > max_values) refuse(at, "aliases expand to too many values");
    if (depth() + found->second->height > max_nesting) refuse_nesting(at);
    auto copy = std::make_shared<node>(*found->second);
    copy->at = at;
    add(std::move(copy));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    start(kind::sequence, mark, tag, anchor);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    start(kind::mapping, mark, tag, anchor);
  }
  void OnMapEnd() override { end(); }

 private:
  struct open_value {
    std::shared_ptr<node> value;
    YAML::anchor_t anchor;
    std::map<std::string, position, std::less<>> seen;  // mapping: its keys
    std::optional<std::string> key;                     // mapping: the key that waits for its value
    position key_at;
  };

  [[noreturn]] void refuse(position at, std::string_view what, std::string hint = {}) const {
    throw refused{refusal(place(*file_, at), what, std::move(hint))};
  }
  [[noreturn]] void refuse_nesting(position at) const {
    refuse(at, "nested deeper than " + std::to_string(max_nesting) + " levels");
  }
  void refuse_tag(const std::string& tag, position at) const {
    if (tag.empty() || tag == "?" || tag == "!") return;
    refuse(at, "tags such as " + quoted(tag) + " are not supported",
           "remove the tag; quote the value if it is text");
  }

  int depth() const { return static_cast<int>(open_.size()); }

  std::shared_ptr<node> make(kind type, const YAML::Mark& mark) {
    auto value = std::make_shared<node>();
    value->type = type;
    value->file = file_;
    value->at = position_of(mark);
    if (++values_ > max_values) refuse(value->at, "more than " + std::to_string(max_values) + " values");
    return value;
  }

  void start(kind type, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    auto value = make(type, mark);
    refuse_tag(tag, value->at);
    if (depth() >= max_nesting) refuse_nesting(value->at);
    if (expects_key()) refuse(value->at, "a key must be a plain word or a quoted text");
    open_.push_back({std::move(value), anchor, {}, {}, {}});
  }

  void end() {
    auto done = std::move(open_.back());
    open_.pop_back();
    finish(std::move(done.value), done.anchor);
  }

  void finish(std::shared_ptr<node> value, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) anchors_[anchor] = value;
    add(std::move(value));
  }

  bool expects_key() const {
    return !open_.empty() && open_.back().value->type == kind::mapping && !open_.back().key;
  }

  void add(std::shared_ptr<const node> value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return;
    }
    auto& parent = open_.back();
    if (expects_key()) return add_key(parent, *value);
    parent.value->height = std::max(parent.value->height, value->height + 1);
    parent.value->weight += value->weight;
    if (parent.value->type == kind::sequence) {
      parent.value->items.push_back(std::move(value));
    } else {
      parent.value->members.push_back({std::move(*parent.key), parent.key_at, std::move(value)});
      parent.key.reset();
    }
  }

  void add_key(open_value& parent, const node& key) {
    if (key.type != kind::scalar) refuse(key.at, "a key must be a plain word or a quoted text");
    if (key.plain && key.text == "<<")
      refuse(key.at, "merge keys ('<<') are not supported", "write the merged keys out");
    const auto [first, fresh] = parent.seen.emplace(key.text, key.at);
    if (!fresh)
      refuse(key.at,
             "duplicate key " + quoted(key.text) + ", first at line " + std::to_string(first->second.line),
             "remove one of the two");
    parent.key = key.text;
    parent.key_at = key.at;
  }

  std::shared_ptr<const std::string> file_;
  std::vector<open_value> open_;
  std::map<YAML::anchor_t, std::shared_ptr<const node>> anchors_;
  std::shared_ptr<const node> root_;
  std::size_t values_ = 0;
  std::size_t alias_weight_ = 0;
};

// The parser takes 0x04 for the end of the text and passes other bytes on; a policy must not end early.
std::optional<error> refuse_bytes(std::string_view text, const std::string& name) {
  position at;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7f)
      return refusal(place(name, at), "a control character in the text", "a YAML file is UTF-8 text");
    at = byte == '\n' ? position{at.line + 1, 1} : position{at.line, at.column + 1};
  }
  if (!is_utf8(text)) return refusal(name, "is not UTF-8 text", "a YAML file is UTF-8 text");
  return std::nullopt;
}

std::string_view kind_name(kind type) {
  switch (type) {
    case kind::null:
      return "nothing";
    case kind::scalar:
      return "a single value";
    case kind::sequence:
      return "a list";
    case kind::mapping:
      return "a mapping";
  }
  return "nothing";
}

error wrong_type(const yaml_value& value, std::string_view wanted) {
  const std::string hint = wanted == "a list"
                               ? "write [VALUE, …], or each value on a line of its own after `- `"
                           : wanted == "a mapping" ? "write `KEY: VALUE`, each on a line of its own"
                                                   : "";
  return value.error_here(
      "expected " + std::string(wanted) + ", found " + std::string(kind_name(value.type())), hint);
}

// The parser says of a tab that something ends too early.
std::string hint_at_tabs(std::string_view text, int last_line) {
  for (int line = 1; line <= last_line && !text.empty(); ++line) {
    const auto indentation = text.substr(0, text.find_first_not_of(" \t"));
    if (indentation.find('\t') != std::string_view::npos)
      return "line " + std::to_string(line) + " begins with a tab: YAML forbids tabs for indentation";
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  return {};
}

}  // namespace

kind yaml_value::type() const {
  return node_->type;
}

unsigned yaml_value::line() const {
  return static_cast<unsigned>(node_->at.line);
}

std::string yaml_value::where() const {
  return place(*node_->file, node_->at);
}

error yaml_value::error_here(std::string_view what, std::string hint) const {
  return refusal(where(), what, std::move(hint));
}

result<std::string> yaml_value::as_string() const {
  if (type() != kind::scalar) return wrong_type(*this, "a text");
  return node_->text;
}

result<bool> yaml_value::as_bool() const {
  if (type() != kind::scalar) return wrong_type(*this, "true or false");
  if (node_->plain && node_->text == "true") return true;
  if (node_->plain && node_->text == "false") return false;
  return error_here("expected true or false, found " + quoted(node_->text));
}

result<std::int64_t> yaml_value::as_integer() const {
  if (type() != kind::scalar) return wrong_type(*this, "a whole number");
  const std::string& text = node_->text;
  const std::size_t digits = text.starts_with('-') ? 1 : 0;
  // A leading zero would be octal to some readers and decimal to others.
  const bool ambiguous = text.size() > digits + 1 && text[digits] == '0';
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc::result_out_of_range)
    return error_here("the number " + quoted(text) + " is out of range");
  if (!node_->plain || ambiguous || problem != std::errc() || end != text.data() + text.size())
    return error_here("expected a whole number, found " + quoted(text));
  return number;
}

result<std::vector<yaml_value>> yaml_value::items() const {
  if (type() != kind::sequence && type() != kind::null) return wrong_type(*this, "a list");
  std::vector<yaml_value> out;
  out.reserve(node_->items.size());
  for (const auto& item : node_->items)
    out.emplace_back(item);
  return out;
}

result<std::vector<std::pair<std::string, yaml_value>>> yaml_value::members() const {
  if (type() != kind::mapping && type() != kind::null) return wrong_type(*this, "a mapping");
  std::vector<std::pair<std::string, yaml_value>> out;
  out.reserve(node_->members.size());
  for (const auto& member : node_->members)
    out.emplace_back(member.key, yaml_value(member.value));
  return out;
}

result<std::vector<std::string>> yaml_value::strings() const {
  const auto values = items();
  if (!values) return values.error();
  std::vector<std::string> out;
  out.reserve(values->size());
  for (const auto& value : *values) {
    auto text = value.as_string();
    if (!text) return text.error();
    out.push_back(std::move(*text));
  }
  return out;
}

yaml_value yaml_value::operator[](std::string_view key) const {
  for (const auto& member : node_->members)
    if (member.key == key) return yaml_value(member.value);
  auto missing = std::make_shared<node>();
  missing->file = node_->file;
  missing->at = node_->at;
  return yaml_value(std::move(missing));
}

bool yaml_value::has(std::string_view key) const {
  return std::any_of(node_->members.begin(), node_->members.end(),
                     [&](const auto& m) { return m.key == key; });
}

result<void> yaml_value::require_keys(std::initializer_list<std::string_view> known) const {
  if (type() != kind::mapping && type() != kind::null) return wrong_type(*this, "a mapping");
  for (const auto& member : node_->members) {
    if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
    std::string hint = "known keys: ";
    for (const auto key : known)
      (hint += key == *known.begin() ? "" : ", ") += key;
    return refusal(place(*node_->file, member.at), "unknown key " + quoted(member.key), std::move(hint));
  }
  return {};
}

result<void> check_yaml_text(std::string_view text, const std::string& name) {
  if (text.size() > max_file_bytes)
    return error{error_code::too_large, printable(name) + ": larger than 4 MiB",
                 "a configuration file is a few kilobytes"};
  if (auto bad = refuse_bytes(text, printable(name))) return *bad;
  return {};
}

result<yaml_value> load_yaml_text(std::string_view text, const std::string& name) {
  const auto file = std::make_shared<const std::string>(printable(name));
  if (auto fine = check_yaml_text(text, name); !fine) return fine.error();
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    tree_builder builder(file);
    if (!parser.HandleNextDocument(builder)) {
      auto nothing = std::make_shared<node>();
      nothing->file = file;
      return yaml_value(std::move(nothing));
    }
    parser.HandleNextDocument(builder);
    return yaml_value(builder.take_root());
  } catch (const refused& r) {
    return r.reason;
  } catch (const YAML::Exception& e) {
    return refusal(e.mark.is_null() ? *file : place(*file, position_of(e.mark)), printable(e.msg),
                   e.mark.is_null() ? std::string() : hint_at_tabs(text, position_of(e.mark).line));
  } catch (const std::exception& e) {
    return refusal(*file, "cannot be parsed: " + printable(e.what()));
  }
}

result<std::string> read_yaml_file(const std::string& path) {
  const auto fd = open_trusted_file("configuration file", path);
  if (!fd) return fd.error();
  std::string text;
  // One byte more than allowed tells a file that is too large, also one that grows.
  while (text.size() <= max_file_bytes) {
    char buffer[65536];
    const auto count = ::read(fd->get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("read", path, errno);
    if (count == 0) break;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return text;
}

result<yaml_value> load_yaml_file(const std::string& path) {
  auto text = read_yaml_file(path);
  if (!text) return text.error();
  return load_yaml_text(*text, path);
}

}  // namespace ccbox
