// A file that decides what this process does: a plugin, the manifest that names plugins, the policy.
//
// It is opened only if nobody but root and the user who runs ccbox may write it, or put another file in its
// place: its directory is looked at too, the sticky bit notwithstanding. The directories above are not.
#pragma once

#include <string>
#include <string_view>

#include "result.hpp"
#include "unique_fd.hpp"

namespace ccbox {

// `kind` begins each message: "plugin". A regular file, read-only, non-blocking; a symbolic link is refused.
// A missing directory or file is not_found.
result<unique_fd> open_trusted_file(std::string_view kind, const std::string& path);

}  // namespace ccbox
