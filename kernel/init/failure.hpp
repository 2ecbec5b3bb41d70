// How ccbox-init gives up before it has answered `ready`: one line on standard error, which the kernel side
// collects from the launcher, and exit code 1.
#pragma once

namespace ccbox::init {

// `error_number` 0: nothing is added to `what`.
[[noreturn]] void fail(const char* what, int error_number = 0);

}  // namespace ccbox::init
