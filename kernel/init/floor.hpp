// The floor under an enclosure's commands (ccbox/floor.hpp): what a Landlock domain and a listener's filter
// refuse for good, and what only the broker outside can then do for them.
//
// Each step does what its name says or ends the process with a line on standard error (failure.hpp).
#pragma once

#include <string>

#include "../unique_fd.hpp"
#include "ccbox/floor.hpp"

namespace ccbox::init {

// Reads and closes `file`.
floor_orders read_floor_orders(unique_fd file);

// Enters the domain and tries it. Wants no_new_privs; nothing of the orders may be installed before.
void lay_floor(const floor_orders& orders);

// Installs the filter and hands its listener to the broker. On return the broker answers. The base filter may
// be installed before.
void hand_over_listener(const floor_orders& orders, unique_fd broker);

// In each guarded directory: makes and removes a file of the one name, and is refused one of the other.
void try_broker(const floor_orders& orders, const std::string& ordinary, const std::string& forbidden);

}  // namespace ccbox::init
