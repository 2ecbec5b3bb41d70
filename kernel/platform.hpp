// Which platform this program is made for. Each has a file of its own: platform_linux.cpp.
#pragma once

#include "host.hpp"

namespace ccbox {

host_platform this_platform();

}  // namespace ccbox
