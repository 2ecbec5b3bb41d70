#include "monitor.hpp"

#include <algorithm>

#include "backend.hpp"
#include "denial.hpp"
#include "plugin_call.hpp"

namespace ccbox {

namespace {

constexpr std::size_t most_violations = 1000;  // a call
constexpr std::uint32_t least_pause_ms = 10;   // between two flushes
constexpr std::uint32_t longest_pause_ms = 60000;

error plugin_error(const std::string& name, error_code code, std::string_view what) {
  return {code, "monitor plugin " + quoted(name) + ": " + std::string(what), {}};
}

ccbox_str str(std::string_view text) {
  return {text.data(), text.size()};
}

std::string text_of(ccbox_str text) {
  return text.ptr ? std::string(text.ptr, text.len) : std::string();
}

// What a call answers through its sink. Nothing may be thrown into the plugin.
void take(void* ctx, const ccbox_violation* given) noexcept {
  auto& out = *static_cast<std::vector<sandbox_event>*>(ctx);
  if (!given || !CCBOX_HAS(given, ccbox_violation, raw) || out.size() >= most_violations) return;
  try {
    sandbox_violation violation;
    violation.action = text_of(given->action);
    violation.target = text_of(given->target);
    violation.count = given->count;
    if (given->suggested_capability.len > 0)
      violation.suggested_capability = text_of(given->suggested_capability);
    if (given->raw.len > 0) violation.raw = text_of(given->raw);
    if (violation.action.empty()) return;
    make_safe(violation);
    sandbox_event event;
    event.type = sandbox_event_type::violation;
    event.exec_id = given->exec_id;
    event.violation = std::move(violation);
    out.push_back(std::move(event));
  } catch (const std::exception&) {
    // Memory ran out: this one is lost.
  }
}

ccbox_monitor_sink sink_of(std::vector<sandbox_event>& into) {
  ccbox_monitor_sink sink{};
  sink.size = sizeof sink;
  sink.ctx = &into;
  sink.violation = take;
  return sink;
}

// Calls `call` with a sink; what a plugin throws ends with the call.
template <class Call>
std::vector<sandbox_event> answers_of(Call&& call) {
  std::vector<sandbox_event> out;
  const auto sink = sink_of(out);
  text_buffer ignored;
  call_plugin(
      [&] {
        call(&sink);
        return ccbox_status{CCBOX_OK};
      },
      ignored);
  return out;
}

}  // namespace

monitor_plugin::monitor_plugin(std::string name, ccbox_plugin* plugin, const ccbox_monitor* table)
    : name_(std::move(name)), plugin_(plugin), table_(table) {}

result<void> monitor_plugin::validate() const {
  if (!table_ || !CCBOX_HAS(table_, ccbox_monitor, close) || !table_->open || !table_->denial ||
      !table_->output || !table_->flush || !table_->close)
    return plugin_error(name_, error_code::failed, "its table is smaller than version 1.0 or has holes");
  return {};
}

result<std::unique_ptr<monitor_watch>> monitor_plugin::open(const policy& p, rule_bits enforced,
                                                            bool denials_reported) const {
  if (auto valid = validate(); !valid) return valid.error();
  std::vector<ccbox_rule> rules;
  rules.reserve(p.rules.size());
  for (const auto& r : p.rules)
    rules.push_back(to_abi(r));
  ccbox_monitor_request request{};
  request.size = sizeof request;
  if (denials_reported) request.flags |= CCBOX_MONITOR_DENIALS_REPORTED;
  request.rules = rules.data();
  request.rule_count = rules.size();
  request.rule_stride = sizeof(ccbox_rule);
  request.enforced = enforced;
  request.session_id = str(p.spec.session_id);
  request.workdir = str(p.workdir);

  ccbox_watch* watch = nullptr;
  text_buffer text;
  const auto status = call_plugin([&] { return table_->open(plugin_, &request, &watch, text.raw()); }, text);
  if (status == CCBOX_OK && watch) return std::unique_ptr<monitor_watch>(new monitor_watch(table_, watch));
  auto what = printable(text.view());
  if (what.empty()) what = "open failed with status " + std::to_string(status) + " and no reason";
  return plugin_error(name_, to_error_code(status), what);
}

monitor_watch::~monitor_watch() {
  close();
}

std::vector<sandbox_event> monitor_watch::denial(const sandbox_violation& denied) {
  ccbox_violation given{};
  given.size = sizeof given;
  given.count = denied.count;
  given.action = str(denied.action);
  given.target = str(denied.target);
  if (denied.suggested_capability) given.suggested_capability = str(*denied.suggested_capability);
  if (denied.raw) given.raw = str(*denied.raw);
  const std::lock_guard lock(mutex_);
  if (!watch_) return {};
  return answers_of([&](const ccbox_monitor_sink* sink) { table_->denial(watch_, &given, sink); });
}

std::vector<sandbox_event> monitor_watch::output(std::uint64_t exec_id, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  if (!watch_) return {};
  return answers_of(
      [&](const ccbox_monitor_sink* sink) { table_->output(watch_, exec_id, str(bytes), sink); });
}

monitor_watch::told monitor_watch::flush(bool last) {
  told out;
  const std::lock_guard lock(mutex_);
  if (!watch_) return out;
  out.events = answers_of(
      [&](const ccbox_monitor_sink* sink) { out.again_ms = table_->flush(watch_, last ? 1 : 0, sink); });
  if (out.again_ms != 0) out.again_ms = std::clamp(out.again_ms, least_pause_ms, longest_pause_ms);
  return out;
}

void monitor_watch::close() noexcept {
  const std::lock_guard lock(mutex_);
  if (!watch_) return;
  try {
    table_->close(watch_);
  } catch (...) {
    // It broke the contract; there is nobody to tell, and teardown goes on.
  }
  watch_ = nullptr;
}

}  // namespace ccbox
