// The environment of a command: built from an allow-list, never filtered from "whatever is there".
#pragma once

#include <map>
#include <string>
#include <vector>

#include "policy_config.hpp"

namespace ccbox {

using environment = std::map<std::string, std::string>;

struct dropped_variable {
  std::string name;    // quoted where it is no identifier
  std::string reason;  // never the value
};

// Keeps what `allow` names, minus what the deny list, the secret names or the secret values catch (compared
// without regard to case), minus names that are empty or no identifiers and values with NUL.
environment sanitise_environment(const environment& host, const environment_config& config,
                                 std::vector<dropped_variable>* dropped = nullptr);

// For callers that pass their own (ACP, the harness): only the deny fence.
environment strip_injection(const environment& host, const environment_config& config,
                            std::vector<dropped_variable>* dropped = nullptr);

}  // namespace ccbox
