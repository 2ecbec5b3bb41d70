// rename, renameat and renameat2 of the caller, done by the broker.
#pragma once

#include "broker/desk.hpp"

namespace ccbox::bubblewrap {

// `flags`: renameat2's. A directory moves only if nothing in it is forbidden where it is or where it would
// be: the tree is looked through where the rules of the two places differ, up to a limit beyond which it is
// refused.
outcome rename(desk& at, const caller& who, const path_argument& from, const path_argument& to,
               unsigned flags);

}  // namespace ccbox::bubblewrap
