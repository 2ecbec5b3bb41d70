// Refused actions that harm nobody and that programs go on without: not worth telling.
//
// An entry is a pattern for the action and one for the target, with a space between; `*` is any text, `?` one
// character.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ccbox::violations {

class noise_filter {
 public:
  // `entries`: one a line; empty lines, and those that begin with '#', mean nothing. Throws plugin::failure,
  // which names the line.
  noise_filter(std::string_view entries, bool with_built_in);

  bool covers(std::string_view action, std::string_view target) const;

 private:
  std::vector<std::pair<std::string, std::string>> own_;
  bool built_in_;
};

}  // namespace ccbox::violations
