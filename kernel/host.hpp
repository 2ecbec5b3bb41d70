// What the policy compiler needs to know of the host and the caller, gathered once; tests make their own.
#pragma once

#include <sys/types.h>

#include <future>
#include <map>
#include <string>
#include <vector>

#include "kernel_mounts.hpp"
#include "result.hpp"

namespace ccbox {

enum class host_platform { linux_like, macos, other };

struct host_facts {
  host_platform platform = host_platform::linux_like;
  uid_t uid = 0;  // effective
  gid_t gid = 0;
  std::string home;  // the caller's, absolute; from $HOME, else the user database
  // Homes whose secrets a mount may show besides: the account's own where $HOME says something else and, for
  // a root caller, those of all people in the user database.
  std::vector<std::string> other_homes;
  // What no command may change, or it would choose what runs unconfined the next time: this program, its
  // parts and its configuration. Whoever knows them fills it in.
  std::vector<std::string> own_files;
  // What it may not read either: it is there for this program alone.
  std::vector<std::string> own_secrets;
  std::vector<kernel_mount> kernel_mounts;
  // What find_private_entries("/etc") finds, where somebody had it begin early; a policy that needs it waits
  // for it, or looks itself.
  std::shared_future<result<std::vector<std::string>>> private_in_etc;
  std::map<std::string, std::string> environment;  // the caller's
  std::string current_directory;  // absolute; empty if it has none: deleted, or beyond PATH_MAX
};

host_facts gather_host_facts();

// Is this process inside an enclosure of ccbox? For messages only: whoever is pid 1 here may call itself
// anything.
bool inside_enclosure();

}  // namespace ccbox
