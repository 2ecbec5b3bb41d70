// The accounts of the local user database, people's and services'.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace ccbox {

struct account {
  uid_t uid = 0;
  std::string home;  // as it is written there: may be empty, relative or missing
};

// Read as text: the name service would ask a directory server for everybody. Malformed lines are skipped.
// [any thread]
std::vector<account> local_accounts();

}  // namespace ccbox
