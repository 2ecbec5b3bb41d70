// Launching, listing, inspecting and destroying sandboxes.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json.hpp>
#include <set>

#include "service.hpp"

namespace ccbox::server {

namespace json = boost::json;
namespace asio = boost::asio;

namespace {

constexpr std::uint64_t most_grace_ms = 60'000;
constexpr unsigned usual_grace_ms = 2000;

// Those that are being launched.
using busy_ids = std::set<std::string>;

struct claim {
  busy_ids& ids;
  const std::string& id;
  ~claim() { ids.erase(id); }
};

asio::awaitable<api_response> launch(service s, std::shared_ptr<busy_ids> busy, std::string body) {
  auto spec = parse_sandbox_spec(body);
  if (!spec) co_return error_response(spec.error());
  if (!s.status.enabled && spec->backend.value_or("").empty()) spec->backend = "none";
  const std::string id = spec->session_id;
  const auto old = s.port.find(id);
  if ((old && old->handle().state != sandbox_state::error) || !busy->insert(id).second)
    co_return error_response(
        {error_code::conflict, "session " + quoted(id) + " exists already", "choose another sessionId"});
  const claim held{*busy, id};
  s.journal.follow(id);
  auto launching = s.port.launch(std::move(*spec));
  auto made = co_await asio::co_spawn(s.pool, std::move(launching), asio::use_awaitable);
  if (!made) {
    if (!s.port.find(id)) s.journal.forget(id);
    co_return error_response(made.error());
  }
  auto out = json_response(201, to_json((*made)->handle()));
  out.headers.emplace_back("Location", "/v1/sandboxes/" + id);
  co_return out;
}

asio::awaitable<api_response> list(service s) {
  json::array all;
  for (const auto& handle : s.port.list())
    all.push_back(to_json(handle));
  co_return json_response(200, json::object{{"sandboxes", std::move(all)}});
}

asio::awaitable<api_response> inspect(service s, api_request request) {
  const auto found = session_of(s, request);
  if (!found) co_return error_response(found.error());
  co_return json_response(200, to_json((*found)->handle()));
}

asio::awaitable<api_response> destroy(service s, api_request request) {
  if (auto fine = only_parameters(request, {"graceMs"}); !fine) co_return error_response(fine.error());
  const auto grace = number_parameter(request, "graceMs", most_grace_ms);
  if (!grace) co_return error_response(grace.error());
  const auto found = session_of(s, request);
  if (!found) co_return error_response(found.error());
  const auto& ended = *found;
  co_await ended->destroy(static_cast<unsigned>(grace->value_or(usual_grace_ms)));
  co_await s.journal.finish(request.captured.at("id"));
  co_return json_response(200, to_json(ended->handle()));
}

}  // namespace

void add_sandbox_routes(router& routes, const service& s) {
  const auto busy = std::make_shared<busy_ids>();
  routes.add("POST", "/v1/sandboxes",
             [s, busy](const api_request& request) { return launch(s, busy, request.body); });
  routes.add("GET", "/v1/sandboxes", [s](const api_request&) { return list(s); });
  routes.add("GET", "/v1/sandboxes/{id}", [s](const api_request& request) { return inspect(s, request); });
  routes.add("DELETE", "/v1/sandboxes/{id}", [s](const api_request& request) { return destroy(s, request); });
}

}  // namespace ccbox::server
