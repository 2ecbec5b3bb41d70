// The ABI header in C++17: the veneer needs C++20, a plugin in older C++ uses the C header as it is.
#include "ccbox/plugin.h"

#include "abi_use.h"
