// What the calls that make, change or remove a name come to at one path: which of them succeed, what the
// others end with, and the rule that says so. Answers of the standard backend on Linux, where mounts hold
// what exists and a broker over a Landlock floor does what makes names.
#pragma once

#include <vector>

#include "policy.hpp"

namespace ccbox {

// In the order read, write, create, rename to it, rename it, link to it, link of it, remove. Nothing for what
// is no path.
std::vector<path_operation> operations_on(const policy& p, const path_answer& answer);

}  // namespace ccbox
