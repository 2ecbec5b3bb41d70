#include "session_proxies.hpp"

#include <algorithm>

namespace ccbox {

namespace asio = boost::asio;

namespace {

constexpr unsigned ports_inside = 2;

// The first port is the HTTP proxy's, the second the SOCKS proxy's; each has a socket or two.
std::vector<egress_listener> as_listeners(const std::vector<loopback_listener>& ports) {
  constexpr ccbox_listener_kind kinds[ports_inside] = {CCBOX_LISTENER_HTTP, CCBOX_LISTENER_SOCKS};
  std::vector<egress_listener> out;
  for (std::size_t i = 0; i < ports_inside; ++i) {
    const std::string port = ":" + std::to_string(ports.at(i).port);
    out.push_back({kinds[i], ports[i].v4.get(), "127.0.0.1" + port});
    if (ports[i].v6) out.push_back({kinds[i], ports[i].v6.get(), "[::1]" + port});
  }
  return out;
}

void append(std::string& value, const std::string& more) {
  value += (value.empty() ? "" : " ") + more;
}

}  // namespace

asio::awaitable<result<std::unique_ptr<session_proxies>>> session_proxies::start(asio::any_io_executor strand,
                                                                                 source from,
                                                                                 const policy& rules,
                                                                                 enclosure* inside) {
  const resolved_egress& wanted = rules.egress;
  std::unique_ptr<session_proxies> made(new session_proxies);
  made->network_ = wanted.network_allowed
                       ? std::to_string(wanted.count(egress_action::allow)) + " destinations allowed"
                       : "every destination refused";
  egress_request request;
  request.session_id = rules.spec.session_id;
  request.rules = wanted.rules;
  request.options = wanted.options;
  if (!from.net_connect.empty())
    request.net_connect = inside ? std::string(net_connect_inside) : from.net_connect;
  std::vector<loopback_listener> ports;
  if (inside) {
    auto listening = co_await inside->listen(ports_inside);
    if (!listening) co_return listening.error();
    ports = std::move(*listening);
    request.listeners = as_listeners(ports);
    if (wanted.bridge == egress_bridge::socat) {
      auto bridge = socat_bridge::start(strand, request.listeners);
      if (!bridge) co_return bridge.error();
      made->bridge_ = std::move(*bridge);
      request.listeners = made->bridge_->listeners();
    }
  }
  auto pair = from.plugin->open(request);
  if (!pair) co_return pair.error();
  made->pair_ = std::move(*pair);
  co_return std::move(made);
}

session_proxies::~session_proxies() = default;

void session_proxies::close() noexcept {
  pair_->close();
}

void session_proxies::add_to(environment& variables) const {
  for (const auto& variable : pair_->environment()) {
    auto& value = variables[variable.name];
    if (!variable.append) value.clear();
    append(value, variable.value);
  }
}

void session_proxies::append_to(environment& variables,
                                const std::vector<std::pair<std::string, std::string>>& extra) const {
  for (const auto& variable : pair_->environment()) {
    const bool replaced = std::any_of(extra.begin(), extra.end(),
                                      [&](const auto& each) { return each.first == variable.name; });
    if (variable.append && replaced) append(variables[variable.name], variable.value);
  }
}

void session_proxies::describe(std::map<std::string, std::string>& details) const {
  details["network"] = network_;
  details["proxy.http"] = pair_->endpoint(CCBOX_LISTENER_HTTP);
  details["proxy.socks"] = pair_->endpoint(CCBOX_LISTENER_SOCKS);
  if (bridge_) details["proxy.bridge"] = "socat";
}

}  // namespace ccbox
