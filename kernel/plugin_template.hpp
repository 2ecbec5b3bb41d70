// `ccbox plugin new NAME`: writes a complete project for a backend outside this tree. It builds against the
// installed CMake package `ccbox`, has tests of its own and runs the contract suite on itself. As written it
// claims nothing that a launch could rely on, so ccbox loads it and refuses to run commands with it until its
// author adds rules.
#pragma once

#include <string>

#include "result.hpp"

namespace ccbox {

// Makes the directory `directory` (which must not exist) and the project in it. Errors: a name that is no
// plugin name ([a-z][a-z0-9_-]{0,31}) or that ccbox, CMake or a shipped plugin uses; a directory that exists
// or cannot be made. Nothing half-made is left behind.
result<void> write_plugin_project(const std::string& name, const std::string& directory);

}  // namespace ccbox
