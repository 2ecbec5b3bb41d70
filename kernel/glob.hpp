// The globs of name rules, with errors in the kernel's form. See ccbox/glob.hpp.
#pragma once

#include <string_view>

#include "ccbox/glob.hpp"
#include "result.hpp"

namespace ccbox {

// Errors: invalid_argument, see glob::compile.
result<glob> compile_glob(std::string_view pattern);

}  // namespace ccbox
