// Running the contract suite from a test.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plugin_contract.hpp"

namespace ccbox::test {

using plugin_options = std::vector<std::pair<std::string, std::string>>;

// One line a failed check, "name: reason"; empty if all are kept. Debug and sanitizer builds get more time.
std::string broken_promises(const std::string& plugin, const plugin_options& options = {});

}  // namespace ccbox::test
