// Whether dispatch is wrapped on this host, and the one line at boot that says so.
#pragma once

#include <string>

#include "registry.hpp"

namespace ccbox::server {

struct sandbox_status {
  bool enabled = true;              // --sandbox on
  const backend* native = nullptr;  // what dispatch is wrapped in; null: this host offers nothing
  std::string note;                 // of its probe
  std::string hint;                 // what the operator can do, where there is none
  bool wraps() const { return enabled && native; }
};

// Of the probe at boot. Borrows the backend from the registry.
sandbox_status status_of(const registry& plugins, bool enabled);

// In the three forms of the specification: "agent sandbox ON: NOTE", "no OS-native agent sandbox on this
// host: HINT", "agent sandbox DISABLED by --sandbox off".
std::string startup_line(const sandbox_status& status);

}  // namespace ccbox::server
