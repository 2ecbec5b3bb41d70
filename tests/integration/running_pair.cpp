#include "integration/running_pair.hpp"

namespace ccbox::test {

using namespace std::chrono_literals;

egress::session_settings running_pair::quick() {
  egress::session_settings s;
  s.connect_timeout = 2000ms;
  s.resolve_timeout = 300ms;
  s.head_timeout = 2000ms;
  s.drain_limit = 200ms;
  s.denial_window = 50ms;
  s.attempt_delay = 20ms;
  return s;
}

running_pair::setup running_pair::allowing(const std::vector<std::string>& patterns) {
  setup out;
  for (const auto& pattern : patterns)
    out.rules.push_back({egress::rule_action::allow, pattern, "test", "", false});
  out.rules.push_back({egress::rule_action::resolved, "127.0.0.0/8", "test", "", false});
  return out;
}

running_pair::running_pair(setup with)
    : resolver_({egress::ip_address::from_v4(0x7f000001), dns_.port()}, 100ms, 2),
      log_(with.decision_log, common_.count) {
  common_.names = &resolver_;
  common_.log = &log_;
  common_.emit = [this](const std::string&, std::string_view type, const std::string& json) {
    const std::lock_guard lock(mutex_);
    (type == "denial" ? denials_ : unreachable_).push_back(json);
    changed_.notify_all();
  };
  if (with.with_token) token_ = egress::access_token::random();
  auto built = egress::egress_policy::build(with.rules);
  REQUIRE(built.index() == 0);
  worker_.start();
  auto session = std::make_shared<egress::egress_session>(worker_, common_, "s", std::get<0>(built),
                                                          with.settings, token_);
  pair_ = std::make_unique<egress::proxy_pair>(worker_, common_, std::move(session), with.listeners);
  pair_->open();
}

running_pair::~running_pair() {
  pair_->close();
  worker_.stop(2000ms);
}

std::uint16_t running_pair::port_of(ccbox_listener_kind kind) const {
  const auto address = pair_->address_of(kind);
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

std::vector<std::string> running_pair::denials(std::size_t at_least) {
  return wait_until(denials_, at_least);
}

std::vector<std::string> running_pair::unreachable(std::size_t at_least) {
  return wait_until(unreachable_, at_least);
}

std::vector<std::string> running_pair::wait_until(const std::vector<std::string>& events,
                                                  std::size_t at_least) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, 10s, [&] { return events.size() >= at_least; });
  return events;
}

std::string running_pair::connect(tcp_peer& client, const std::string& authority) {
  client.send("CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n");
  return client.read_until("\r\n\r\n");
}

}  // namespace ccbox::test
