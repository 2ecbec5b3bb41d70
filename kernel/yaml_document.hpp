// A YAML file as values that remember where they stand, so that every error says file:line:column.
//
// Strict: one document a file, unknown and duplicate keys are errors, no implicit defaults for wrong types.
// Values borrow nothing: they may outlive the document.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "result.hpp"

namespace ccbox {

class yaml_value {
 public:
  enum class kind { null, scalar, sequence, mapping };

  kind type() const;
  bool is_null() const { return type() == kind::null; }
  std::string where() const;  // "config/plugins.yaml:12:5"
  unsigned line() const;

  // "where(): what", code invalid_argument.
  error error_here(std::string_view what, std::string hint = {}) const;

  result<std::string> as_string() const;  // a scalar, as written
  result<bool> as_bool() const;           // true or false only: not yes, on, 1
  result<std::int64_t> as_integer() const;
  result<std::vector<yaml_value>> items() const;                            // null counts as empty
  result<std::vector<std::pair<std::string, yaml_value>>> members() const;  // null counts as empty
  result<std::vector<std::string>> strings() const;                         // a sequence of scalars

  // The member, or null if the mapping has none.
  yaml_value operator[](std::string_view key) const;
  bool has(std::string_view key) const;

  // Error at the first key that is not listed; its hint lists the known ones.
  result<void> require_keys(std::initializer_list<std::string_view> known) const;

  struct node;
  explicit yaml_value(std::shared_ptr<const node> n) : node_(std::move(n)) {}

 private:
  std::shared_ptr<const node> node_;
};

// Refuses a file that others may write (see trusted_file.hpp), one over 4 MiB, and nesting over 32.
result<yaml_value> load_yaml_file(const std::string& path);
result<std::string> read_yaml_file(const std::string& path);  // its text alone
result<yaml_value> load_yaml_text(std::string_view text, const std::string& name);
// What load_yaml_text() asks of its text before it parses it: size, UTF-8, no control characters.
result<void> check_yaml_text(std::string_view text, const std::string& name);

}  // namespace ccbox
