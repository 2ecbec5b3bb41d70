// The paths of a session whose reading its policy denies, and that are there: what a refused read is reported
// for, with the rule's own reason.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ccbox/plugin.hpp"

namespace ccbox::violations {

class masked_paths {
 public:
  explicit masked_paths(const plugin::monitor_request& request);

  struct mask {
    std::string path;    // inside
    std::string rule;    // the host's spelling
    std::string reason;  // for people
  };
  // The innermost mask that covers `path`, which is absolute and normal; null: it is not masked.
  const mask* find(std::string_view path) const;

  // `path` as a command in the session's work directory means it: absolute, without `.`, `..` and `//`.
  std::string absolute(std::string_view path) const;

 private:
  std::vector<mask> masks_;
  std::string workdir_;
};

}  // namespace ccbox::violations
