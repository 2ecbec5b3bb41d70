// What every operation of the broker works with, and how it refuses.
#pragma once

#include <sys/stat.h>

#include <optional>

#include "broker/caller.hpp"
#include "broker/denial_report.hpp"
#include "broker/name_rules.hpp"
#include "broker/place.hpp"

namespace ccbox::bubblewrap {

class desk {
 public:
  desk(const name_rules& with_rules, const path_resolver& with_paths, denial_report& reports)
      : rules(with_rules), paths(with_paths), reports_(reports) {}

  const name_rules& rules;
  const path_resolver& paths;

  // Resolves a path. Done: it lies where names are guarded, and its directory can be named.
  outcome locate(const caller& who, const path_argument& argument, place& found) const;
  // The rule that forbids a name, or null.
  const name_rule* forbids(const place& at) const { return rules.forbids(rules.at(at.directory), at.name); }

  outcome deny(const caller& who, const char* operation, const place& at, const name_rule& rule) const;

  // From here on, files are made with the caller's umask.
  void take_umask_of(const caller& who);
  void forget_umasks() { umasks_.forget(); }

 private:
  denial_report& reports_;
  umask_memory umasks_;
  std::optional<mode_t> present_umask_;
};

bool exists(const place& at);

}  // namespace ccbox::bubblewrap
