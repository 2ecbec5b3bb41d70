#include "sandbox_handle.hpp"

#include <doctest/doctest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <set>
#include <utility>

#include "support/result_printing.hpp"

using namespace ccbox;

namespace {

const std::vector<sandbox_state> all_states = {sandbox_state::created,   sandbox_state::warm,
                                               sandbox_state::active,    sandbox_state::suspended,
                                               sandbox_state::destroyed, sandbox_state::error};

}  // namespace

TEST_CASE("of every pair of states exactly the listed ones are legal") {
  const std::set<std::pair<std::string, std::string>> legal = {
      {"created", "warm"},     {"created", "destroyed"}, {"created", "error"},  {"warm", "active"},
      {"warm", "suspended"},   {"warm", "destroyed"},    {"warm", "error"},     {"active", "warm"},
      {"active", "destroyed"}, {"active", "error"},      {"suspended", "warm"}, {"suspended", "destroyed"},
      {"suspended", "error"},  {"error", "destroyed"},
  };
  int pairs = 0;
  for (const auto from : all_states) {
    for (const auto to : all_states) {
      CAPTURE(to_string(from));
      CAPTURE(to_string(to));
      const bool expected = legal.count({std::string(to_string(from)), std::string(to_string(to))}) == 1;
      CHECK(is_legal_transition(from, to) == expected);
      sandbox_handle handle;
      handle.session_id = "s1";
      handle.state = from;
      const auto moved = transition(handle, to);
      CHECK(moved.has_value() == expected);
      CHECK(handle.state == (expected ? to : from));
      if (!expected) {
        CHECK(moved.error().code == error_code::illegal_state);
        CHECK(moved.error().what == "session 's1' cannot go from " + std::string(to_string(from)) + " to " +
                                        std::string(to_string(to)));
      }
      ++pairs;
    }
  }
  CHECK(pairs == 36);
}

TEST_CASE("a destroyed session stays destroyed") {
  for (const auto to : all_states)
    CHECK(!is_legal_transition(sandbox_state::destroyed, to));
}

TEST_CASE("every state and backend has the specification's name") {
  std::set<std::string> names;
  for (const auto state : all_states) {
    CHECK(sandbox_state_from_name(to_string(state)) == state);
    names.insert(std::string(to_string(state)));
  }
  CHECK(names == std::set<std::string>{"created", "warm", "active", "suspended", "destroyed", "error"});
  CHECK(!sandbox_state_from_name("Warm"));
  CHECK(!sandbox_state_from_name(""));
  CHECK(to_string(sandbox_backend::native) == "native");
  CHECK(to_string(sandbox_backend::microvm) == "microvm");
  CHECK(to_string(sandbox_backend::none) == "none");
}

TEST_CASE("a stored backend that is null or unknown is none and docker is native") {
  CHECK(sandbox_backend_from_name(std::nullopt) == sandbox_backend::none);
  for (const auto* name : {"", "nonsense", "Native", "native ", "null"})
    CHECK(sandbox_backend_from_name(name) == sandbox_backend::none);
  CHECK(sandbox_backend_from_name("docker") == sandbox_backend::native);
  CHECK(sandbox_backend_from_name("native") == sandbox_backend::native);
  CHECK(sandbox_backend_from_name("microvm") == sandbox_backend::microvm);
  CHECK(sandbox_backend_from_name("none") == sandbox_backend::none);
}

TEST_CASE("a handle's JSON has the specification's spellings") {
  sandbox_handle handle;
  handle.session_id = "s1";
  handle.backend = sandbox_backend::native;
  handle.state = sandbox_state::warm;
  handle.details = {{"plugin", "bubblewrap"}, {"workdir", "/caf\xe9"}};
  CHECK(boost::json::serialize(to_json(handle)) ==
        R"({"sessionId":"s1","backend":"native","state":"warm",)"
        "\"details\":{\"plugin\":\"bubblewrap\",\"workdir\":\"/caf\xef\xbf\xbd\"}}");
}

TEST_CASE("a failed launch's handle says what failed and what to do") {
  sandbox_handle handle;
  handle.session_id = "s1";
  handle.state = sandbox_state::error;
  handle.failure = error{error_code::unenforceable, "no", "yes"};
  CHECK(boost::json::serialize(to_json(handle)) ==
        R"({"sessionId":"s1","backend":"none","state":"error",)"
        R"("error":{"code":"unenforceable","what":"no","hint":"yes"},"details":{}})");
}
