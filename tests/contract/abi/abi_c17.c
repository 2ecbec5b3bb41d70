/* The ABI header after other headers, as C17. */
#include <string.h>

#include "ccbox/plugin.h"

#include "abi_use.h"
