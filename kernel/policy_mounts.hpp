// The mount rules of a policy: what of the host is visible inside, and where.
//
// Each mount's source is resolved once and checked: it exists, is a directory or a regular file, and leads
// nowhere into /proc, /dev or /sys. `path` of a rule is the resolved source; `guest_path` the place as it was
// asked for. Two mounts of one place collapse into one; a place below another mount exists on the host
// already, as the same type and reached without a symbolic link, because nothing is ever created in the
// user's tree.
#pragma once

#include <string>
#include <vector>

#include "host.hpp"
#include "policy.hpp"
#include "policy_config.hpp"
#include "result.hpp"
#include "sandbox_spec.hpp"

namespace ccbox {

// Sorted so that a mount comes after the one around it.
result<std::vector<rule>> compile_mounts(const sandbox_spec& spec, const host_facts& host,
                                         const policy_config& config, std::vector<std::string>& warnings);

// Is `guest` a place that the enclosure makes itself: /proc, /dev, /sys, /run and what is below /run/ccbox?
bool is_reserved_place(std::string_view guest);

// Can a mount point be made at `guest`? File systems take names of 255 bytes, and a backend needs some of the
// length of a path for itself (bubblewrap mounts below /newroot).
bool fits_in_enclosure(std::string_view guest);

}  // namespace ccbox
