// Configuration of git that comes into place.
#pragma once

#include "broker/desk.hpp"

namespace ccbox::bubblewrap {

// Renames `source` to `target` beside it, if what it says can do no harm; else a denial that names the key.
// `target` is not the file that the caller has made, which it may still hold open, have mapped or have under
// another name, but one of the broker's with the bytes that were looked at. Nobody inside opens it for
// writing: that, too, the broker would have to do, and it does one thing at a time. The two may be the same
// name.
outcome install_git_config(desk& at, const caller& who, const place& source, const place& target,
                           const name_rule& rule);

}  // namespace ccbox::bubblewrap
