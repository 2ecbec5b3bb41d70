#include "yaml_document.hpp"

#include "fuzz/target.hpp"

namespace {

using ccbox::error_code;
using ccbox::yaml_value;

void check_error(const ccbox::error& e) {
  fuzz::require(e.what.starts_with("odd.yaml"), "an error says where");
  fuzz::require_good_error(e, {error_code::invalid_argument, error_code::too_large});
}

template <class T>
bool reads(const ccbox::result<T>& value) {
  if (!value) check_error(value.error());
  return value.has_value();
}

// Every value can be read in every way, and is of one kind only.
std::size_t visit(const yaml_value& value, std::size_t depth) {
  fuzz::require(depth <= 33, "nesting is bounded");
  const bool scalar = reads(value.as_string());
  const bool boolean = reads(value.as_bool());
  const bool integer = reads(value.as_integer());
  const auto items = value.items();
  const auto members = value.members();
  const bool strings = reads(value.strings());
  fuzz::require(scalar == (value.type() == yaml_value::kind::scalar),
                "as_string reads scalars and nothing else");
  fuzz::require(!boolean || scalar, "a boolean is a scalar");
  fuzz::require(!integer || (scalar && !boolean), "an integer is a scalar and no boolean");
  fuzz::require(reads(items) == (value.is_null() || value.type() == yaml_value::kind::sequence),
                "items of a list");
  fuzz::require(reads(members) == (value.is_null() || value.type() == yaml_value::kind::mapping),
                "members of a map");
  fuzz::require(!strings || items.has_value(), "strings are items");
  std::size_t count = 1;
  if (items)
    for (const auto& item : *items)
      count += visit(item, depth + 1);
  if (members) {
    for (const auto& [key, member] : *members) {
      fuzz::require(value.has(key), "a key of a map is there");
      fuzz::require(value[key].where() == member.where(), "a key stands once in a map");
      count += visit(member, depth + 1);
    }
    fuzz::require(reads(value.require_keys({})) == members->empty(), "a key that is not known is an error");
  }
  return count;
}

void run(std::string_view text) {
  const auto value = ccbox::load_yaml_text(text, "odd.yaml");
  if (!value) return check_error(value.error());
  // As many as the file may have, and as many again by aliases.
  fuzz::require(visit(*value, 0) <= 400'001, "aliases do not expand without bound");
}

const fuzz::registered target("yaml_document", run);

}  // namespace
