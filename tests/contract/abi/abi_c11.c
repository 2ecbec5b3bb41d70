/* The ABI header alone, as C11 and with every warning on: it needs nothing before it and may be included twice. */
#include "ccbox/plugin.h"
#include "ccbox/plugin.h"

#include "abi_use.h"
