// One rule of a session's egress policy as the kernel keeps it: what the egress plugin is given, and where it
// was written.
#pragma once

#include <string>

namespace ccbox {

enum class egress_action { allow = 1, deny, floor, resolved };  // = ABI

struct egress_rule {
  egress_action action = egress_action::allow;
  bool git_host = false;  // allow: without a port it means 22 too
  std::string pattern;    // the plugin knows the grammar, and nobody else
  std::string origin;     // "baseline.llm", "egressAllowlist"
  std::string reason;     // for people
  std::string where;      // file:line, or the place in the spec
  bool operator==(const egress_rule&) const = default;
};

// What a session cannot reach because its agent lacks a capability: for suggestions only.
struct withheld_domain {
  std::string pattern;     // host[:port], as the file has it
  std::string capability;  // "canCallGitHubApi"
  bool operator==(const withheld_domain&) const = default;
};

}  // namespace ccbox
