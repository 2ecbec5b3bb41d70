// Closing a descriptor that an event loop watches.
//
// Asio leaves it to close() to end the watch. The kernel watches the open file, though, not the descriptor:
// while another descriptor of it is open, a duplicate of ours or a copy in a child that has not executed yet,
// the watch stays, and its events reach whatever the loop keeps in the same place next. Somebody else's wait
// then ends for no reason.
#pragma once

#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>

namespace ccbox {

// Idempotent. What waits on it ends with operation_aborted.
inline void unwatch_and_close(boost::asio::posix::stream_descriptor& watched) {
  if (watched.is_open()) ::close(watched.release());
}

}  // namespace ccbox
