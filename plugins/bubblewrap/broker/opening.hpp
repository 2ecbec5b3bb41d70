// open, creat, openat, openat2 and truncate of the caller, done by the broker.
#pragma once

#include "broker/desk.hpp"

namespace ccbox::bubblewrap {

struct open_request {
  path_argument where;
  int flags = 0;
  mode_t mode = 0;
};

struct opened_file {
  descriptor file;
  // Where it has been made just now: parent and name. Not open: it was there.
  place made;
  bool waits_for_reader = false;  // it is a FIFO that nobody reads yet: to be asked again
};

// Done: `opened` is the file.
outcome open_file(desk& at, const caller& who, open_request asked, opened_file& opened);
// The caller cannot take the file: what has been made for it goes again.
void take_back(const opened_file& opened);

outcome truncate_file(desk& at, const caller& who, path_argument where, off_t length);

}  // namespace ccbox::bubblewrap
