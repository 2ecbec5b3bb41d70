#include <boost/json.hpp>

#include "limits.hpp"
#include "rule_bits.hpp"
#include "service.hpp"

namespace ccbox::server {

namespace json = boost::json;
namespace asio = boost::asio;

namespace {

asio::awaitable<api_response> healthz(const api_request&) {
  co_return json_response(200, json::object{{"status", "ok"}});
}

}  // namespace

void add_host_routes(router& routes, const service&) {
  routes.add("GET", "/healthz", healthz);
}

}  // namespace ccbox::server
