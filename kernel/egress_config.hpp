// config/egress.yaml: which destinations sessions may reach, by groups, and how their proxies work.
//
// Loading is strict and errors carry file:line. The grammar of a domain is the egress plugin's:
// check_entries() asks it about each entry. A file that is named and is missing, empty or unreadable is an
// error; there is no default that allows anything.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "egress.hpp"
#include "result.hpp"

namespace ccbox {

struct egress_entry {
  std::string pattern;  // host[:port]; floor: an address range
  std::string reason;
  unsigned line = 0;  // of the file

  bool operator==(const egress_entry&) const = default;
};

struct egress_group {
  std::string name;    // "llm"
  std::string origin;  // "baseline.llm"
  std::string why;
  bool git_hosts = false;
  bool enabled = true;  // optional groups: named by `enable`
  std::vector<egress_entry> entries;

  bool operator==(const egress_group&) const = default;
};

enum class egress_bridge { direct, socat };
std::string_view to_string(egress_bridge bridge);

struct egress_config {
  std::string file;
  bool as_built = false;                      // the very file that ccbox was built with
  std::vector<egress_group> baseline;         // every session whose network is on
  std::vector<egress_group> github;           // … and that may call the GitHub API or push
  std::vector<egress_group> ticketing;        // … and whose caller names them
  std::vector<egress_group> optional;         // … where `enable` names them
  std::vector<egress_group> denied;           // never, whatever allows it
  std::vector<egress_group> floor;            // address ranges that nothing opens
  std::vector<egress_entry> resolved_ranges;  // that are not global and that allowed names may resolve into
  egress_bridge bridge = egress_bridge::direct;
  // For the plugin's open(), as texts: all_proxy, sni, upstream, limits, …
  std::vector<std::pair<std::string, std::string>> options;

  std::string where(const egress_entry& entry) const;  // "config/egress.yaml:12"

  bool operator==(const egress_config&) const = default;
};

// `path` empty: the installed one, then the source tree's (see paths.hpp).
result<egress_config> load_egress_config(const std::string& path);
result<egress_config> parse_egress_config(std::string_view text, const std::string& name);

// Asks the plugin about every entry, those that no session uses at the moment too. The first that it refuses
// is the error. Of the file that ccbox was built with (`as_built`) the tests have asked, and open() refuses
// what it cannot take in any case: a start need not ask again.
result<void> check_entries(const egress_config& config, const egress_plugin& plugin);

// The rule that an entry is; `action` allow, deny, floor or resolved.
egress_rule to_rule(const egress_config& config, const egress_group& group, const egress_entry& entry,
                    egress_action action);

}  // namespace ccbox
