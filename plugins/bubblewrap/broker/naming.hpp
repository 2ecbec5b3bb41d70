// The calls of the caller that make or remove a name without opening a file, done by the broker.
#pragma once

#include "broker/desk.hpp"

namespace ccbox::bubblewrap {

outcome make_directory(desk& at, const caller& who, const path_argument& where, mode_t mode);
outcome make_node(desk& at, const caller& who, const path_argument& where, mode_t mode, dev_t device);
outcome make_symlink(desk& at, const caller& who, const path_argument& where, const std::string& target);
// `flags`: unlinkat's.
outcome remove(desk& at, const caller& who, const path_argument& where, int flags);
// `flags`: linkat's.
outcome make_link(desk& at, const caller& who, path_argument from, const path_argument& to, int flags);

}  // namespace ccbox::bubblewrap
