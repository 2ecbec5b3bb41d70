#include "support/server_process.hpp"

#include <doctest/doctest.h>

namespace ccbox::test {

namespace {

running start(const std::string& state, const std::vector<std::string>& options, const run_options& how) {
  std::vector<std::string> argv{server_program(), "--state-directory", state};
  argv.insert(argv.end(), options.begin(), options.end());
  return running::start(argv, how);
}

}  // namespace

std::string server_program() {
  return CCBOX_TEST_BINARY_DIR "/bin/cc_server";
}

server_process::server_process(const std::vector<std::string>& options, const run_options& how)
    : process_(start(directory_ / "state", options, how)) {
  REQUIRE(process_.wait_for("event=serving"));
}

}  // namespace ccbox::test
