// config/policy.yaml as it was when ccbox was built, already parsed: a file with the very same bytes need not
// be parsed again, which is most of what `ccbox run` would compute.
//
// The build makes the data: kernel/shipped/embed_policy.cpp parses the file as load_policy_config would and
// writes `shipped_text` and `shipped_table`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "policy_config.hpp"

namespace ccbox {

// What parse_policy_config(text, name) answers, if `text` is the shipped file to the last byte; else nothing.
std::optional<policy_config> shipped_policy(std::string_view text, const std::string& name);

// `config` was parsed with an empty name.
std::string to_table(const policy_config& config);
policy_config from_table(std::string_view table, const std::string& name);

extern const std::string_view shipped_text, shipped_table;

}  // namespace ccbox
