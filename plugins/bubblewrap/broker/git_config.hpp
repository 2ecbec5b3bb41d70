// Configuration of git that an agent has written: does it only say what can do no harm?
//
// What is read here is a strict subset of what git reads: a text that git could understand in another way is
// refused, and so is everything that is not on the list of harmless settings.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ccbox::bubblewrap {

struct git_setting {
  std::string key;  // section and name in small letters, the subsection as it is: `remote.Origin.url`
  std::string value;
};

// The settings of a text, in its order. Nothing, and a phrase in `problem` that names the line: it is
// refused. Not accepted though git does: continued lines, keys without a value, `[section.subsection]`, a key
// on the line of its section, a byte order mark, control characters, tabs between the words of a value.
std::optional<std::vector<git_setting>> parse_git_config(std::string_view text, std::string& problem);

// Empty: harmless. Otherwise a phrase that names the first key, or the line, that is not. `directory`: the
// absolute path of the directory that the file lies in.
std::string objection_to_git_config(std::string_view text, std::string_view directory);

}  // namespace ccbox::bubblewrap
