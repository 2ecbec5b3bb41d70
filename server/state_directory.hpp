// The directory of one server: private to its user, locked by the living.
#pragma once

#include <string>

#include "result.hpp"
#include "unique_fd.hpp"

namespace ccbox::server {

class state_directory {
 public:
  // Makes it if it is missing, mode 0700. conflict: another server holds it; permission_denied: it is a link,
  // belongs to somebody else, or others may write it.
  static result<state_directory> take(const std::string& path);

  const std::string& path() const { return path_; }
  std::string socket() const { return path_ + "/cc_server.sock"; }

 private:
  state_directory(std::string path, unique_fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string path_;
  unique_fd lock_;
};

// Where it is if nobody says: systemd's RUNTIME_DIRECTORY, below XDG_RUNTIME_DIR, /run for root, else /tmp.
std::string default_state_directory();

}  // namespace ccbox::server
