#include "dialler.hpp"

namespace ccbox::egress {
namespace {

constexpr std::size_t most_answer_bytes = 16 * 1024;

dial_failure failed(dial_failure::kind what) {
  return {what, {}};
}

// "HTTP/1.x NNN"; 0: something else.
unsigned status_of(std::string_view head) {
  constexpr std::string_view version = "HTTP/1.";
  if (head.size() < 12 || head.substr(0, version.size()) != version || head[8] != ' ') return 0;
  unsigned status = 0;
  for (const char c : head.substr(9, 3)) {
    if (c < '0' || c > '9') return 0;
    status = status * 10 + static_cast<unsigned>(c - '0');
  }
  return status;
}

}  // namespace

direct_dialler::direct_dialler(worker& where, const egress_policy& policy, const own_listeners& own,
                               name_cache& names, const session_settings& settings)
    : worker_(where), policy_(policy), own_(own), names_(names), settings_(settings) {}

task<dial_outcome> direct_dialler::dial(destination to, std::shared_ptr<dial_scope> scope) {
  addresses found;
  if (to.is_address())
    found.permitted = {to.address()};
  else
    found = co_await look_up(to.name(), scope);
  if (found.permitted.empty()) co_return found.failure;
  found = judge(to, found.permitted);
  if (found.permitted.empty()) co_return found.failure;
  co_return co_await race(std::move(found.permitted), to.port, std::move(scope));
}

task<direct_dialler::addresses> direct_dialler::look_up(std::string name, std::shared_ptr<dial_scope> scope) {
  name_cache::answer answer(worker_.executor());
  scope->on_cancel([answer] { answer.set({}); });
  names_.find(name, answer);
  auto result = co_await answer.get();
  scope->on_cancel(nullptr);
  addresses out;
  out.failure.what = dial_failure::kind::lookup_failed;
  if (scope->cancelled())
    out.failure.what = dial_failure::kind::cancelled;
  else if (result.what == lookup_result::status::no_such_name)
    out.failure.what = dial_failure::kind::no_such_name;
  else if (result.what == lookup_result::status::timed_out)
    out.failure.what = dial_failure::kind::lookup_timed_out;
  else if (result.what == lookup_result::status::found)
    out.permitted = std::move(result.addresses);
  co_return out;
}

direct_dialler::addresses direct_dialler::judge(const destination& to,
                                                const std::vector<ip_address>& all) const {
  addresses out;
  out.failure.what = dial_failure::kind::refused_by_policy;
  bool first = true;
  for (const auto& address : all) {
    auto judged = policy_.permits(to, address);
    if (judged.allowed && own_.contains(address, to.port)) judged = {false, denial_reason::self, nullptr};
    if (judged.allowed)
      out.permitted.push_back(address);
    else if (std::exchange(first, false))
      out.failure.by = judged;
  }
  return out;
}

task<dial_outcome> direct_dialler::race(std::vector<ip_address> to, std::uint16_t port,
                                        std::shared_ptr<dial_scope> scope) {
  if (scope->cancelled()) co_return failed(dial_failure::kind::cancelled);
  const auto run = std::make_shared<connect_race>(
      worker_, std::move(to), port, connect_race::limits{settings_.attempt_delay, settings_.connect_timeout});
  eventual<dial_outcome> result(worker_.executor());
  scope->on_cancel([run] { run->cancel(); });
  run->start(result);
  auto outcome = co_await result.get();
  scope->on_cancel(nullptr);
  if (scope->cancelled()) co_return failed(dial_failure::kind::cancelled);
  co_return outcome;
}

task<dial_outcome> upstream_dialler::dial(destination to, std::shared_ptr<dial_scope> scope) {
  if (to.is_address()) {
    auto judged = judge(to, {to.address()});
    if (judged.permitted.empty()) co_return judged.failure;
  }
  const auto& parent = *settings_.upstream;
  addresses found;
  if (parent.at.is_address())
    found.permitted = {parent.at.address()};
  else
    found = co_await look_up(parent.at.name(), scope);
  std::erase_if(found.permitted,
                [&](const ip_address& address) { return own_.contains(address, parent.at.port); });
  if (scope->cancelled()) co_return failed(dial_failure::kind::cancelled);
  if (found.permitted.empty()) co_return failed(dial_failure::kind::upstream_failed);
  auto outcome = co_await race(std::move(found.permitted), parent.at.port, scope);
  auto* made = std::get_if<dialled>(&outcome);
  if (!made) {
    const auto what = std::get<dial_failure>(outcome).what;
    const bool ours = what == dial_failure::kind::cancelled || what == dial_failure::kind::no_resources;
    co_return failed(ours ? what : dial_failure::kind::upstream_failed);
  }
  const auto proxy = std::make_shared<stream_socket>(std::move(made->socket));
  const auto name = authority_text(to);
  std::string request = "CONNECT " + name + " HTTP/1.1\r\nHost: " + name + "\r\n";
  if (!parent.authorization.empty()) request += "Proxy-Authorization: " + parent.authorization + "\r\n";
  const auto close = [proxy] {
    boost::system::error_code ignored;
    proxy->close(ignored);
  };
  scope->on_cancel(close);
  deadline limit(worker_.deadlines(), close);
  limit.after(settings_.connect_timeout);
  auto answer = co_await ask(proxy, request + "\r\n");
  scope->on_cancel(nullptr);
  if (scope->cancelled()) co_return failed(dial_failure::kind::cancelled);
  co_return answer;
}

task<dial_outcome> upstream_dialler::ask(std::shared_ptr<stream_socket> proxy, std::string request) {
  if (!co_await send_all(*proxy, request)) co_return failed(dial_failure::kind::upstream_failed);
  std::string answer;
  char bytes[4096];
  std::size_t end = answer.npos;
  while ((end = answer.find("\r\n\r\n")) == answer.npos) {
    if (answer.size() > most_answer_bytes) co_return failed(dial_failure::kind::upstream_failed);
    const auto [stopped, length] = co_await proxy->async_read_some(asio::buffer(bytes), no_throw);
    if (stopped) co_return failed(dial_failure::kind::upstream_failed);
    answer.append(bytes, length);
  }
  const auto status = status_of(answer);
  if (status == 0) co_return failed(dial_failure::kind::upstream_failed);
  if (status / 100 != 2) co_return failed(dial_failure::kind::upstream_refused);
  co_return dialled{std::move(*proxy), answer.substr(end + 4)};
}

}  // namespace ccbox::egress
