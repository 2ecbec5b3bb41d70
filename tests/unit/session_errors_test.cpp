#include "session_errors.hpp"

#include <doctest/doctest.h>

using namespace ccbox;

namespace {

const error no_process{error_code::failed, "it wrote 'bwrap: fork: Resource temporarily unavailable'", {}};
const error no_reason{error_code::failed, "the launcher was killed by signal 9", {}};

bool says(const error& e, const char* part) {
  return e.hint.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a start that could not make a process says whose limit it may be") {
  resource_limits limits;
  CHECK(says(hinting_at_limits(no_process, limits), "ulimit -u"));
  CHECK_FALSE(says(hinting_at_limits(no_process, limits), "limits.processes"));
  limits.processes = 5;
  limits.memory_bytes = 4 << 20;
  CHECK(says(hinting_at_limits(no_process, limits), "limits.processes"));
}

TEST_CASE("a start with very little memory says so, one with enough does not") {
  resource_limits limits;
  CHECK(hinting_at_limits(no_reason, limits).hint.empty());
  limits.memory_bytes = 4 << 20;
  const auto hinted = hinting_at_limits(no_reason, limits);
  CHECK(hinted.code == error_code::too_large);
  CHECK(says(hinted, "limits.memoryBytes is 4194304"));
  limits.memory_bytes = 64 << 20;
  CHECK(hinting_at_limits(no_reason, limits).hint.empty());
}

TEST_CASE("a hint that is there stays") {
  resource_limits limits;
  limits.memory_bytes = 4 << 20;
  error e = no_process;
  e.hint = "known";
  CHECK(hinting_at_limits(e, limits).hint == "known");
}
