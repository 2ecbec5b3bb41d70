// config/policy.yaml, egress.yaml and plugins.yaml as they were when ccbox was built, already parsed: a file
// with the very same bytes need not be parsed again, which is most of what `ccbox run` would compute.
//
// The build makes the data: kernel/shipped/embed_config.cpp parses each file as its loader would and writes
// its text and the table of what came of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "egress_config.hpp"
#include "manifest.hpp"
#include "policy_config.hpp"

namespace ccbox {

// What parse_policy_config(text, name) answers, if `text` is the shipped file to the last byte; else nothing.
std::optional<policy_config> shipped_policy(std::string_view text, const std::string& name);
// The same of parse_egress_config(), but that `as_built` is set, and of parse_manifest().
std::optional<egress_config> shipped_egress(std::string_view text, const std::string& name);
std::optional<manifest> shipped_manifest(std::string_view text, const std::string& name,
                                         const std::string& plugin_directory);

// What was parsed with empty names. A manifest among them names files in the plugin directory only.
std::string to_table(const policy_config& config);
std::string to_table(const egress_config& config);
std::string to_table(const manifest& plugins);

struct shipped_file {
  std::string_view text, table;
};
extern const shipped_file shipped_policy_file, shipped_egress_file, shipped_manifest_file;

}  // namespace ccbox
