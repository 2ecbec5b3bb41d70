// The ABI header in C++20.
#include "ccbox/plugin.h"

#include "abi_use.h"
