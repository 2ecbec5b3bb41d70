#include "egress.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "plugin_call.hpp"
#include "utf8.hpp"

namespace ccbox {

namespace {

constexpr std::size_t max_endpoints = 16;
constexpr std::size_t max_variables = 128;
constexpr std::size_t max_value_bytes = 16 << 10;

error plugin_error(const std::string& name, error_code code, std::string_view what) {
  return {code, "egress plugin " + quoted(name) + ": " + std::string(what), {}};
}

error refused_call(const std::string& name, const char* call, ccbox_status status, const text_buffer& text) {
  auto what = printable(text.view());
  if (what.empty())
    what = std::string(call) + " failed with status " + std::to_string(status) + " and no reason";
  return plugin_error(name, to_error_code(status), what);
}

error bad_rule(const egress_rule& rule, std::string_view why) {
  const std::string place = rule.where.empty() ? rule.origin : rule.where;
  return {error_code::invalid_argument, place + ": " + quoted(rule.pattern) + ": " + printable(why), {}};
}

// The rule that open() refuses, by how its answer begins.
std::optional<error> refused_rule(std::span<const egress_rule> rules, std::string_view answer) {
  for (const auto& rule : rules) {
    const auto beginning = rule.origin + ": '" + rule.pattern + "': ";
    if (answer.starts_with(beginning)) return bad_rule(rule, answer.substr(beginning.size()));
  }
  return std::nullopt;
}

ccbox_str str(std::string_view text) {
  return {text.data(), text.size()};
}

std::string_view view(ccbox_str text) {
  return text.ptr ? std::string_view(text.ptr, text.len) : std::string_view();
}

ccbox_egress_rule to_abi(const egress_rule& r) {
  return {static_cast<ccbox_egress_action>(r.action), r.git_host ? std::uint32_t{CCBOX_EGRESS_GIT_HOST} : 0u,
          str(r.pattern), str(r.origin), str(r.reason)};
}

bool is_endpoint(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == text.npos) return false;
  std::string host(text.substr(0, colon));
  const auto digits = text.substr(colon + 1);
  unsigned port = 0;
  const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (bad != std::errc() || end != digits.data() + digits.size() || port == 0 || port > 0xffff) return false;
  in6_addr address;
  if (host.starts_with('[') && host.ends_with(']'))
    return ::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &address) == 1;
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1;
}

bool is_variable_name(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && name.size() <= 128 && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

// What open() answers through its sink. Nothing may be thrown into the plugin: what goes wrong is kept.
struct answers {
  std::vector<std::pair<ccbox_listener_kind, std::string>> endpoints;
  std::vector<egress_variable> variables;
  std::optional<std::string> wrong;

  void refuse(std::string what) {
    if (!wrong) wrong = std::move(what);
  }

  void add_endpoint(ccbox_listener_kind kind, std::string_view address) {
    if (kind != CCBOX_LISTENER_HTTP && kind != CCBOX_LISTENER_SOCKS)
      return refuse("it names an endpoint of an unknown kind");
    if (!is_endpoint(address))
      return refuse("its endpoint " + quoted(address.substr(0, 100)) + " is no ip:port");
    if (endpoints.size() == max_endpoints) return refuse("it names too many endpoints");
    endpoints.emplace_back(kind, address);
  }

  void add_variable(std::string_view name, std::string_view value, std::uint32_t flags) {
    if (!is_variable_name(name)) return refuse(quoted(name.substr(0, 100)) + " is no name of a variable");
    if (!is_utf8(value) || value.find('\0') != value.npos || value.size() > max_value_bytes)
      return refuse("the value of its variable " + std::string(name) + " cannot be one");
    if ((flags & ~std::uint32_t{CCBOX_EGRESS_APPEND}) != 0)
      return refuse("its variable " + std::string(name) + " has a flag that is unknown here");
    if (variables.size() == max_variables) return refuse("it sets too many variables");
    variables.push_back({std::string(name), std::string(value), (flags & CCBOX_EGRESS_APPEND) != 0});
  }

  const std::string* endpoint(ccbox_listener_kind kind) const {
    for (const auto& [each, address] : endpoints)
      if (each == kind) return &address;
    return nullptr;
  }
};

template <class Action>
void guarded(void* ctx, Action&& action) {
  auto& self = *static_cast<answers*>(ctx);
  try {
    action(self);
  } catch (const std::exception&) {
    self.wrong = "memory ran out while it answered";
  }
}

ccbox_egress_sink sink_of(answers& into) {
  ccbox_egress_sink sink{};
  sink.size = sizeof sink;
  sink.ctx = &into;
  sink.endpoint = [](void* ctx, ccbox_listener_kind kind, ccbox_str address) {
    guarded(ctx, [&](answers& self) { self.add_endpoint(kind, view(address)); });
  };
  sink.environment = [](void* ctx, ccbox_str name, ccbox_str value, std::uint32_t flags) {
    guarded(ctx, [&](answers& self) { self.add_variable(view(name), view(value), flags); });
  };
  return sink;
}

}  // namespace

egress_plugin::egress_plugin(std::string name, ccbox_plugin* plugin, const ccbox_egress* table)
    : name_(std::move(name)), plugin_(plugin), table_(table) {}

result<void> egress_plugin::validate() const {
  if (!table_ || !CCBOX_HAS(table_, ccbox_egress, close) || !table_->check_rule || !table_->open ||
      !table_->decide || !table_->counters || !table_->close)
    return plugin_error(name_, error_code::failed, "its table is smaller than version 1.0 or has holes");
  return {};
}

result<void> egress_plugin::check_rule(const egress_rule& rule) const {
  if (auto valid = validate(); !valid) return valid.error();
  const auto abi = to_abi(rule);
  text_buffer text;
  const auto status = call_plugin([&] { return table_->check_rule(plugin_, &abi, text.raw()); }, text);
  if (status == CCBOX_OK) return {};
  if (status != CCBOX_INVALID) return refused_call(name_, "check_rule", status, text);
  return bad_rule(rule, text.view().empty() ? "is no rule" : text.view());
}

result<std::unique_ptr<egress_pair>> egress_plugin::open(const egress_request& wanted) const {
  if (auto valid = validate(); !valid) return valid.error();
  std::vector<ccbox_egress_rule> rules;
  rules.reserve(wanted.rules.size());
  for (const auto& r : wanted.rules)
    rules.push_back(to_abi(r));
  std::vector<ccbox_listener> listeners;
  for (const auto& l : wanted.listeners)
    listeners.push_back({l.kind, l.fd, str(l.address)});
  std::vector<ccbox_option> options;
  for (const auto& [key, value] : wanted.options)
    options.push_back({str(key), str(value)});

  ccbox_egress_request request{};
  request.size = sizeof request;
  request.rule_stride = sizeof(ccbox_egress_rule);
  request.rules = rules.data();
  request.rule_count = rules.size();
  request.listener_stride = sizeof(ccbox_listener);
  request.option_stride = sizeof(ccbox_option);
  request.listeners = listeners.data();
  request.listener_count = listeners.size();
  request.options = options.data();
  request.option_count = options.size();
  request.session_id = str(wanted.session_id);
  request.net_connect = str(wanted.net_connect);

  answers given;
  const auto sink = sink_of(given);
  text_buffer text;
  const auto status = call_plugin([&] { return table_->open(plugin_, &request, &sink, text.raw()); }, text);
  if (status == CCBOX_INVALID)
    if (auto refused = refused_rule(wanted.rules, text.view())) return *refused;
  if (status != CCBOX_OK) return refused_call(name_, "open", status, text);

  // From here on the handle closes it, whatever is wrong with the answer.
  std::unique_ptr<egress_pair> pair(new egress_pair(name_, plugin_, table_, wanted.session_id));
  if (!given.wrong && !given.endpoint(CCBOX_LISTENER_HTTP)) given.wrong = "it names no HTTP endpoint";
  if (!given.wrong && !given.endpoint(CCBOX_LISTENER_SOCKS)) given.wrong = "it names no SOCKS endpoint";
  if (given.wrong)
    return plugin_error(name_, error_code::failed, "its answer to open cannot be used: " + *given.wrong);
  pair->endpoints_ = std::move(given.endpoints);
  pair->environment_ = std::move(given.variables);
  return pair;
}

void egress_plugin::counters(
    const std::function<void(std::string_view, std::string_view, double)>& each) const {
  if (!validate()) return;
  struct state {
    const std::function<void(std::string_view, std::string_view, double)>& each;
    std::exception_ptr failure = {};
  } calls{each};
  text_buffer text;
  call_plugin(
      [&]() -> ccbox_status {
        table_->counters(plugin_, &calls, [](void* ctx, ccbox_str name, ccbox_str labels, double value) {
          auto& self = *static_cast<state*>(ctx);
          if (self.failure || !is_utf8(view(name)) || !is_utf8(view(labels))) return;
          try {
            self.each(view(name), view(labels), value);
          } catch (...) {
            self.failure = std::current_exception();
          }
        });
        return CCBOX_OK;
      },
      text);
  if (calls.failure) std::rethrow_exception(calls.failure);
}

egress_pair::egress_pair(std::string plugin_name, ccbox_plugin* plugin, const ccbox_egress* table,
                         std::string session_id)
    : name_(std::move(plugin_name)),
      plugin_(plugin),
      table_(table),
      session_id_(std::move(session_id)),
      open_(true) {}

egress_pair::~egress_pair() {
  close();
}

void egress_pair::close() noexcept {
  if (!open_.exchange(false)) return;
  try {
    table_->close(plugin_, str(session_id_));
  } catch (...) {
    // It broke the contract; there is nobody to tell, and teardown goes on.
  }
}

std::string egress_pair::endpoint(ccbox_listener_kind kind) const {
  for (const auto& [each, address] : endpoints_)
    if (each == kind) return address;
  return {};
}

result<egress_decision> egress_pair::decide(std::string_view host, std::uint16_t port) const {
  if (!open_) return plugin_error(name_, error_code::illegal_state, "the pair is closed");
  text_buffer reason, rule, people, text;
  ccbox_egress_decision answer{};
  answer.size = sizeof answer;
  answer.reason = reason.handle();
  answer.rule = rule.handle();
  answer.text = people.handle();
  const auto status = call_plugin(
      [&] { return table_->decide(plugin_, str(session_id_), str(host), port, &answer, text.raw()); }, text);
  if (status != CCBOX_OK) return refused_call(name_, "decide", status, text);
  reason.set_length(answer.reason.length);
  rule.set_length(answer.rule.length);
  people.set_length(answer.text.length);
  for (const auto* each : {&reason, &rule, &people})
    if (each->overrun() || !is_utf8(each->view()))
      return plugin_error(name_, error_code::failed, "its decision is longer than the buffer, or not UTF-8");
  return egress_decision{answer.allowed != 0, printable(reason.view()), printable(rule.view()),
                         printable(people.view())};
}

}  // namespace ccbox
