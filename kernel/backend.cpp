#include "backend.hpp"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "plan_collector.hpp"
#include "plugin_call.hpp"
#include "utf8.hpp"

namespace ccbox {

namespace {

error plugin_error(const std::string& name, error_code code, std::string_view what) {
  return {code, "backend " + quoted(name) + ": " + std::string(what), {}};
}

// What a call that did not return CCBOX_OK means.
error refused_call(const std::string& name, const char* call, ccbox_status status, const text_buffer& text) {
  auto what = printable(text.view());
  if (what.empty())
    what = std::string(call) + " failed with status " + std::to_string(status) + " and no reason";
  return plugin_error(name, to_error_code(status), what);
}

result<std::string> checked_text(const std::string& name, const char* what, const text_buffer& text) {
  if (text.overrun())
    return plugin_error(name, error_code::failed,
                        std::string("its ") + what + " is longer than the buffer for it");
  if (!is_utf8(text.view()))
    return plugin_error(name, error_code::failed,
                        std::string("its ") + what + " is not UTF-8: " + quoted(text.view()));
  return printable(text.view());
}

ccbox_str str(const std::string& text) {
  return {text.data(), text.size()};
}

// A rule that people know under its pattern and that would not hold.
const rule* example_of(const policy& p, rule_bits bit) {
  for (const auto& r : p.rules)
    if (r.bit == bit && r.kind != rule_kind::name_exempt && r.kind != rule_kind::exec_grant) return &r;
  return nullptr;
}

// What the plugin says of the first rule of this bit that nobody enforces: "nobody: CAUSE", or nothing.
std::string cause_of(const policy& p, const plan& made, rule_bits bit) {
  constexpr std::string_view nobody = "nobody: ";
  for (std::size_t i = 0; i < p.rules.size(); ++i)
    if (p.rules[i].bit == bit && made.layers.at(i).starts_with(nobody))
      return printable(std::string_view(made.layers[i]).substr(nobody.size()));
  return {};
}

error unenforceable(const std::string& name, const policy& p, const plan& made) {
  rule_bits missing = p.required & ~made.enforced;
  error e{error_code::unenforceable, "backend " + quoted(name) + " cannot enforce ", {}};
  std::string waivers, causes;
  bool first = true, all_waivable = true;
  const bool one = (missing & (missing - 1)) == 0;
  for (const auto& entry : all_rule_bits()) {
    if (!(missing & entry.bit)) continue;
    e.what += (first ? "" : "; nor ") + std::string(entry.name) + " (" + std::string(entry.promise) + ")";
    if (const auto* example = example_of(p, entry.bit))
      e.what += ", needed for " + quoted(example->path) + ": " + printable(example->reason);
    waivers += " --without " + std::string(entry.name);
    if (const auto cause = cause_of(p, made, entry.bit); !cause.empty())
      causes += (causes.empty() ? "" : "; ") + cause;
    all_waivable &= entry.waivable;
    first = false;
    missing &= ~entry.bit;
  }
  if (missing != 0) {
    e.what += (first ? "" : "; nor ") + join_rule_bits(missing);
    all_waivable = false;
  }
  e.hint = !causes.empty() ? causes
           : one           ? "use a backend that enforces it"
                           : "use a backend that enforces them";
  if (all_waivable)
    e.hint += (one ? ", or give this one rule up with" : ", or give these rules up with") + waivers;
  return e;
}

}  // namespace

ccbox_rule to_abi(const rule& r) {
  std::uint32_t flags = 0;
  if (r.read_only) flags |= CCBOX_RULE_READ_ONLY;
  if (r.glob) flags |= CCBOX_RULE_GLOB;
  if (r.type != path_type::missing) flags |= CCBOX_RULE_EXISTS;
  if (r.type == path_type::directory) flags |= CCBOX_RULE_DIRECTORY;
  if (r.type == path_type::symlink) flags |= CCBOX_RULE_SYMLINK;
  if (r.origin == rule_origin::system) flags |= CCBOX_RULE_SYSTEM;
  if (r.is_target) flags |= CCBOX_RULE_TARGET;
  if (r.condition == name_condition::git_config) flags |= CCBOX_RULE_VETTED_GIT_CONFIG;
  if (r.condition == name_condition::is_new) flags |= CCBOX_RULE_NEW_ALLOWED;
  return {static_cast<ccbox_rule_kind>(r.kind), flags, r.bit, str(r.path), str(r.guest_path), str(r.reason)};
}

backend::backend(std::string name, std::string version, ccbox_plugin* plugin, const ccbox_backend* table)
    : name_(std::move(name)), version_(std::move(version)), plugin_(plugin), table_(table) {
  if (!table_ || !CCBOX_HAS(table_, ccbox_backend, kind) || !table_->kind.ptr) return;
  for (const std::string_view kind : {"native", "microvm", "none"})
    if (std::string_view(table_->kind.ptr, std::min<std::size_t>(table_->kind.len, 64)) == kind) kind_ = kind;
}

result<void> backend::validate() const {
  if (!table_ || !CCBOX_HAS(table_, ccbox_backend, plan) || !table_->probe || !table_->plan)
    return plugin_error(name_, error_code::failed, "its table is smaller than version 1.0 or has holes");
  if (kind_.empty())
    return plugin_error(name_, error_code::failed, "its kind is none of native, microvm, none");
  return {};
}

result<probe_result> backend::probe(ccbox_probe_depth depth, const std::string& init_path) const {
  if (auto valid = validate(); !valid) return valid.error();
  text_buffer note, hint, cause, text;
  const ccbox_probe_request request{sizeof request, depth, str(init_path)};
  ccbox_probe_result answer{};
  answer.size = sizeof answer;
  answer.note = note.handle();
  answer.hint = hint.handle();
  answer.cause = cause.handle();
  const auto status =
      call_plugin([&] { return table_->probe(plugin_, &request, &answer, text.raw()); }, text);
  if (status != CCBOX_OK) return refused_call(name_, "probe", status, text);
  note.set_length(answer.note.length);
  hint.set_length(answer.hint.length);
  cause.set_length(answer.cause.length);

  probe_result out;
  out.available = answer.available != 0;
  out.requires_install = answer.requires_install != 0;
  if (out.available) out.enforced = answer.enforced & known_rule_bits();
  for (const auto& [what, buffer, target] :
       {std::tuple{"note", &note, &out.note}, {"hint", &hint, &out.hint}, {"cause", &cause, &out.cause}}) {
    auto checked = checked_text(name_, what, *buffer);
    if (!checked) return checked.error();
    *target = std::move(*checked);
  }
  return out;
}

result<plan> backend::make_plan(const policy& p, const std::string& init_path) const {
  if (auto valid = validate(); !valid) return valid.error();
  std::vector<ccbox_rule> rules;
  rules.reserve(p.rules.size());
  for (const auto& r : p.rules)
    rules.push_back(to_abi(r));

  ccbox_plan_request request{};
  request.size = sizeof request;
  request.rule_stride = sizeof(ccbox_rule);
  request.rules = rules.data();
  request.rule_count = rules.size();
  request.required = p.required;
  request.waived = p.waived;
  request.session_id = str(p.spec.session_id);
  request.workdir = str(p.workdir);
  request.home = str(p.home);
  request.tmpdir = str(p.tmpdir);
  request.network = p.waived & CCBOX_RULE_NET_PROXY_ONLY ? CCBOX_NETWORK_HOST : CCBOX_NETWORK_PROXY_ONLY;
  request.uid = ::geteuid();
  request.gid = ::getegid();
  request.channel_fd = plan::channel_fd;
  request.init_fd = plan::init_fd;
  request.init_path = str(init_path);

  plan_collector collector(rules.size());
  text_buffer text;
  const auto status =
      call_plugin([&] { return table_->plan(plugin_, &request, collector.sink(), text.raw()); }, text);
  if (status != CCBOX_OK) return refused_call(name_, "plan", status, text);
  auto made = collector.take();
  if (!made) return plugin_error(name_, made.error().code, "its plan cannot be used: " + made.error().what);

  made->plugin = name_;
  made->kind = kind_;
  if (made->unconfined && kind_ != "none")
    return plugin_error(name_, error_code::unenforceable,
                        "it is of kind " + kind_ + " but plans without a boundary");
  if (made->unconfined && (made->enforced & ~CCBOX_RULE_RESOURCE_LIMITS))
    return plugin_error(name_, error_code::unenforceable,
                        "it plans without a boundary but claims " + join_rule_bits(made->enforced));
  if (made->identity_userns && request.uid != 0)
    return plugin_error(name_, error_code::failed,
                        "it plans an identity user namespace for a caller that is not root");
  // The rules of a bit that was given up are not applied, whatever the plugin says.
  made->enforced &= ~p.waived;
  if (p.required & ~made->enforced) return unenforceable(name_, p, *made);
  return std::move(*made);
}

}  // namespace ccbox
