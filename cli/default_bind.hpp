// Whether the current directory may be made writable though nobody named it: a project's directory may, one
// that holds other people's files, or the system's, may not.
#pragma once

#include <optional>
#include <string>

#include "host.hpp"

namespace ccbox {

// Why not; nothing: it may be bound. Looks at the host's files.
std::optional<std::string> why_not_bound_by_default(const host_facts& host);

}  // namespace ccbox
