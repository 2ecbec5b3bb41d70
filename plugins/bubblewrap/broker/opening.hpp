// open, creat, openat, openat2 and truncate of the caller, done by the broker.
#pragma once

#include "broker/desk.hpp"

namespace ccbox::bubblewrap {

struct open_request {
  path_argument where;
  int flags = 0;
  mode_t mode = 0;
};

// Done: `opened` is the file. With `waits_for_reader`, it is a FIFO that nobody reads yet: to be asked again.
outcome open_file(desk& at, const caller& who, open_request asked, descriptor& opened,
                  bool& waits_for_reader);

outcome truncate_file(desk& at, const caller& who, path_argument where, off_t length);

}  // namespace ccbox::bubblewrap
