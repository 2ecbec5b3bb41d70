// `ccbox check domain`: what the session's proxies would say of a destination.
#pragma once

#include <string>

#include "context.hpp"
#include "spec_options.hpp"

namespace ccbox {

// Prints the answer. Exit code 0: allowed, 1: refused.
int check_domain(const sandbox_setup& context, const requested_sandbox& wanted, const std::string& word,
                 bool as_json);

}  // namespace ccbox
