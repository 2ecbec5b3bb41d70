// The client's side of the egress bench. Blocking, one thread; exits with a message if a contender does not
// do what it is asked to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "peer.hpp"

namespace ccbox::bench {

// A connection to the origin through `by` that has carried one small answer.
int open_tunnel(const peer& by, std::uint16_t origin_port);

// Fetches `total_bytes` through `count` tunnels at once. The wall time without that of opening them.
double download_ms(const peer& by, std::uint16_t origin_port, std::size_t count, std::uint64_t total_bytes);

// `count` times, one after the other: open a tunnel, fetch two bytes, close it.
void connect_repeatedly(const peer& by, std::uint16_t origin_port, int count);

// `count` requests in absolute form, over a connection that is kept if the proxy keeps it.
void request_repeatedly(const peer& by, std::uint16_t origin_port, int count);

}  // namespace ccbox::bench
