// Plans for the enclosure's tests: ccbox-init without a boundary, and a program in its place that breaks the
// protocol.
#pragma once

#include <string>

#include "plan.hpp"

namespace ccbox::test {

std::string init_path();

plan unconfined_plan();

// What runs instead of init does what `how` says, see misbehaving_init.cpp. It is the test program itself.
plan misbehaving_plan(const std::string& how);

// A shell in place of the launcher.
plan shell_plan(const std::string& script);

}  // namespace ccbox::test
