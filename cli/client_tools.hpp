// What programs that speak to the network make of the proxies of a session: the table behind `ccbox doctor`.
#pragma once

#include <string>
#include <vector>

#include "egress_config.hpp"

namespace ccbox {

struct client_tool {
  const char* program;
  const char* works;  // with the environment that a session gets
  const char* needs;  // what does not, and what to do; empty: nothing
};
const std::vector<client_tool>& client_tools();

// What the setting means for clients that are built on Python's httpx; empty: they work.
std::string all_proxy_caveat(const egress_config& config);

}  // namespace ccbox
