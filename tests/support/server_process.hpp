// A cc_server of the test's own, on a socket in a directory of the test's own.
#pragma once

#include <string>
#include <vector>

#include "support/run_command.hpp"
#include "support/server_client.hpp"
#include "support/temporary_directory.hpp"

namespace ccbox::test {

class server_process {
 public:
  // Waits until it listens. `options` come after --state-directory.
  explicit server_process(const std::vector<std::string>& options = {}, const run_options& how = {});

  const std::string& directory() const { return directory_.path(); }
  std::string state() const { return directory_ / "state"; }
  std::string socket() const { return state() + "/cc_server.sock"; }
  server_client client() const { return server_client(socket()); }
  running& process() { return process_; }

 private:
  temporary_directory directory_;
  running process_;
};

std::string server_program();

}  // namespace ccbox::test
