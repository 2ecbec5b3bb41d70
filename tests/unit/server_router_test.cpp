#include "router.hpp"

#include <doctest/doctest.h>

using namespace ccbox;
using namespace ccbox::server;

namespace {

boost::asio::awaitable<api_response> nothing(const api_request&) {
  co_return api_response{};
}

router sample() {
  router out;
  out.add("GET", "/v1/things", nothing);
  out.add("POST", "/v1/things", nothing);
  out.add("GET", "/v1/things/{id}", nothing);
  out.add("POST", "/v1/things/{id}/parts/{part}", nothing);
  return out;
}

std::string pattern_of(const std::string& method, const std::string& target) {
  const auto routes = sample();
  const auto found = routes.find(method, target);
  if (!found) return std::string(to_string(found.error().code));
  return found->found ? found->found->pattern : "wrong method";
}

}  // namespace

TEST_CASE("a request finds its route by method and parts") {
  CHECK(pattern_of("GET", "/v1/things") == "/v1/things");
  CHECK(pattern_of("GET", "/v1/things/a") == "/v1/things/{id}");
  CHECK(pattern_of("POST", "/v1/things/a/parts/b") == "/v1/things/{id}/parts/{part}");
  CHECK(pattern_of("GET", "/v1/things/a/parts/b") == "wrong method");
  for (const std::string target :
       {"/", "/v1", "/v1/things/", "/v1/things//parts/b", "/v1/thing", "/V1/things", "/v1/things/a/parts"})
    CHECK_MESSAGE(pattern_of("GET", target) == "not_found", target);
}

TEST_CASE("what stands in a part or a parameter is decoded once, after the target was taken apart") {
  const auto routes = sample();
  const auto found = routes.find("POST", "/v1/things/a%2Fb%25/parts/%C3%A9?x=1+2&y=%2B&z");
  REQUIRE(found.has_value());
  CHECK(found->request.captured.at("id") == "a/b%");
  CHECK(found->request.captured.at("part") == "\xc3\xa9");
  CHECK(found->request.query == std::map<std::string, std::string>{{"x", "1 2"}, {"y", "+"}, {"z", ""}});
}

TEST_CASE("a malformed target is an error, whatever it would have found") {
  for (const std::string target :
       {"v1/things", "", "http://localhost/v1/things", "/v1/%", "/v1/%4", "/v1/%zz", "/v1/%00", "/v1/%ff",
        "/v1/things?a=%", "/v1/things?a=1&a=2", "/v1/things?%00", "*"})
    CHECK_MESSAGE(pattern_of("GET", target) == "invalid_argument", target);
}

TEST_CASE("a path that has other methods says which") {
  const auto routes = sample();
  const auto found = routes.find("DELETE", "/v1/things");
  REQUIRE(found.has_value());
  CHECK(found->allowed == std::vector<std::string>{"GET", "POST"});
}
