// Which host path shows where inside, by the mount rules of a policy.
//
// Built once from finished rules; borrows them: they must stay where they are. Look-ups walk up a path, so
// their cost is its depth, not the number of mounts. Nothing here asks the host.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy.hpp"

namespace ccbox {

class mount_view {
 public:
  explicit mount_view(const std::vector<rule>& rules);

  // The mount that shows a path inside, or null. Links of the system view (/bin) are mounts too.
  const rule* over(std::string_view guest) const;
  // The one that lies around a mount.
  const rule* around(const rule& mount) const;

  // The host path that a path inside shows, or nothing.
  std::optional<std::string> host_path(std::string_view guest) const;

  // The places inside that show a host path, each with its mount. A place that a deeper mount hides is none.
  struct place {
    std::string guest;
    const rule* mount;
  };
  std::vector<place> places_of(std::string_view host) const;

 private:
  std::map<std::string, const rule*, std::less<>> by_guest_;
  std::multimap<std::string, const rule*, std::less<>> by_host_;
};

}  // namespace ccbox
