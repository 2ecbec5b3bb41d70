// How often this thread has asked for memory with `new`, since it started. Counted in this program only.
#pragma once

#include <cstddef>

std::size_t allocations_of_this_thread();
