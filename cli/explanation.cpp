#include "explanation.hpp"

#include <boost/json.hpp>

#include "commands.hpp"
#include "environment.hpp"
#include "limits.hpp"
#include "output.hpp"
#include "sandbox_handle.hpp"

namespace ccbox {

namespace json = boost::json;

namespace {

// The bits that stand between the launch and this backend, if they are all of the kind that may be given up.
rule_bits gap(const policy& rules, rule_bits enforced) {
  const rule_bits missing = rules.required & ~enforced;
  for (const rule_bit_name& known : all_rule_bits()) {
    if ((missing & known.bit) && !known.waivable) return 0;
  }
  return missing;
}

void add_plan(explanation& out, const sandbox_setup& context, const sandbox_spec& spec,
              const backend& chosen) {
  auto how = chosen.make_plan(out.rules, context.parts.init);
  if (how) {
    out.how = std::move(*how);
    out.enforced = out.how->enforced;
    return;
  }
  out.refusal = how.error();
  const rule_bits missing = gap(out.rules, out.enforced);
  if (how.error().code != error_code::unenforceable || missing == 0) return;
  sandbox_spec weaker = spec;
  for (const std::string& name : rule_bit_names(missing))
    weaker.without.push_back(name);
  auto rules = compile_policy(weaker, context.host, context.config, context.sources());
  if (!rules) return;
  // The two policies differ in what is required and waived alone, so that the layers still fit rule by rule.
  if (rules->rules.size() != out.rules.rules.size()) return;
  if (auto plan_without = chosen.make_plan(*rules, context.parts.init)) {
    out.how = std::move(*plan_without);
    out.plan_gives_up = missing;
  }
}

std::string layer_of(const explanation& e, std::size_t index) {
  const rule_bits bit = e.rules.rules[index].bit;
  if (bit & e.rules.waived) return "waived";
  if (bit & e.plan_gives_up) return "nobody";
  if (!e.how) return "no plan";
  const bool named = index < e.how->layers.size() && !e.how->layers[index].empty();
  return named ? e.how->layers[index] : "nobody";
}

std::string shown_path(const rule& r) {
  const bool anchored = r.kind == rule_kind::name_deny || r.kind == rule_kind::name_exempt;
  if (anchored) return quoted(r.path) + " below " + quoted(r.guest_path);
  if (r.guest_path.empty() || r.guest_path == r.path) return quoted(r.path);
  return quoted(r.path) + " at " + quoted(r.guest_path);
}

std::string shown_kind(const rule& r) {
  if (r.condition != name_condition::none)
    return std::string(to_string(r.kind)) + " vetted: " + std::string(to_string(r.condition));
  if (r.kind != rule_kind::mount) return std::string(to_string(r.kind));
  return r.read_only ? "mount ro" : "mount rw";
}

// A deny whose path is not there anyway.
bool has_no_place(const rule& r) {
  return (r.kind == rule_kind::read_deny || r.kind == rule_kind::write_deny) && r.guest_path.empty();
}

std::string heading(std::string_view text) {
  return "\n" + toned(tone::strong, text) + "\n";
}

std::string or_none(std::string text) {
  return text.empty() ? "none" : text;
}

std::string network_text(const explanation& e) {
  const policy& rules = e.rules;
  if (rules.waived & CCBOX_RULE_NET_PROXY_ONLY) return "the host's: net_proxy_only is waived";
  if (!rules.egress.proxied) return "the host's";
  if (e.proxies.empty()) return "none: no egress plugin is loaded";
  if (!rules.network_allowed) return "refused: every destination";
  return "through the session's proxies only";
}

std::string_view verb(egress_action action) {
  switch (action) {
    case egress_action::allow:
      return "allow";
    case egress_action::deny:
      return "deny";
    case egress_action::floor:
      return "floor";
    case egress_action::resolved:
      return "resolved";
  }
  return "allow";
}

// Counts by group, or every entry.
std::string destinations_text(const resolved_egress& egress, bool all) {
  std::vector<std::vector<std::string>> rows;
  if (all) {
    for (const auto& r : egress.rules)
      rows.push_back({std::string(verb(r.action)), printable(r.pattern), printable(r.origin),
                      printable(r.reason) + (r.where.empty() ? "" : " (" + printable(r.where) + ")")});
    return aligned(rows, "  ");
  }
  std::vector<std::pair<std::pair<egress_action, std::string>, std::size_t>> counts;
  for (const auto& r : egress.rules) {
    const std::pair key(r.action, r.origin);
    if (counts.empty() || counts.back().first != key) counts.emplace_back(key, 0);
    ++counts.back().second;
  }
  for (const auto& [key, count] : counts)
    rows.push_back({std::string(verb(key.first)), std::to_string(count), printable(key.second)});
  return aligned(rows, "  ") + (rows.empty() ? "" : "  --all lists them\n");
}

json::value to_json(const resolved_egress& egress) {
  json::array rules;
  for (const auto& r : egress.rules)
    rules.push_back(json::object{{"action", verb(r.action)},
                                 {"pattern", r.pattern},
                                 {"gitHost", r.git_host},
                                 {"origin", r.origin},
                                 {"reason", r.reason},
                                 {"where", r.where}});
  return json::object{{"networkAllowed", egress.network_allowed},
                      {"bridge", to_string(egress.bridge)},
                      {"rules", std::move(rules)}};
}

}  // namespace

result<explanation> explain_launch(const sandbox_setup& context, const sandbox_spec& spec) {
  auto rules = compile_policy(spec, context.host, context.config, context.sources());
  if (!rules) return rules.error();
  explanation out{std::move(*rules), {}, 0, {}, {}, 0, {}, {}, {}};
  if (const auto* proxies = context.plugins->find_egress()) {
    out.proxies = proxies->name();
    if (auto fine = check_allowlist(out.rules.egress, *proxies); !fine) return fine.error();
    if (out.rules.egress.configured && out.rules.egress.proxied)
      if (auto fine = open_trial_pair(*proxies, out.rules); !fine) return fine.error();
  }
  for (const auto& [name, value] : command_environment(out.rules, context.host, context.config)) {
    out.env_names.push_back(name);
  }
  const bool enclosed = out.rules.backend_request != "none";
  if (auto limits = limit_mechanisms(out.rules.spec.limits, enclosed))
    out.limits = std::move(*limits);
  else
    out.refusal = limits.error();
  auto chosen = context.plugins->select_backend(out.rules.backend_request);
  if (!chosen) {
    out.refusal = chosen.error();
    return out;
  }
  out.backend = (*chosen)->name();
  for (const plugin_status& status : context.plugins->statuses()) {
    if (status.name == out.backend && status.probe) out.enforced = status.probe->enforced;
  }
  add_plan(out, context, spec, **chosen);
  return out;
}

std::string to_text(const explanation& e, bool all) {
  std::string text;
  if (e.refusal) {
    text += toned(tone::bad, "would be refused: ") + printable(e.refusal->what) + "\n";
    if (!e.refusal->hint.empty()) text += "hint: " + printable(e.refusal->hint) + "\n";
    text += "\n";
  }
  text += aligned({{"session", e.rules.spec.session_id},
                   {"backend", or_none(e.backend)},
                   {"mode", std::string(to_string(e.rules.spec.mode))},
                   {"workdir", quoted(e.rules.workdir)},
                   {"home", quoted(e.rules.home)},
                   {"tmpdir", quoted(e.rules.tmpdir)},
                   {"network", network_text(e)},
                   {"required", or_none(join_rule_bits(e.rules.required))},
                   {"waived", or_none(join_rule_bits(e.rules.waived))},
                   {"enforced", or_none(join_rule_bits(e.enforced))}});
  for (const std::string& warning : e.rules.warnings) {
    text += toned(tone::attention, "warning: ") + printable(warning) + "\n";
  }

  text += heading("Rules (kind, path, enforced by, origin, reason)");
  std::vector<std::vector<std::string>> rows;
  std::size_t folded = 0;
  for (std::size_t i = 0; i < e.rules.rules.size(); ++i) {
    const rule& r = e.rules.rules[i];
    if (!all && has_no_place(r)) {
      ++folded;
      continue;
    }
    rows.push_back({shown_kind(r), shown_path(r), printable(layer_of(e, i)), std::string(to_string(r.origin)),
                    printable(r.reason)});
  }
  text += aligned(rows, "  ");
  if (folded > 0)
    text +=
        "  and " + std::to_string(folded) + " denies of paths that nothing inside shows; --all lists them\n";

  if (e.rules.egress.proxied && !e.proxies.empty()) {
    text += heading(all ? "Destinations (action, pattern, origin, reason)"
                        : "Destinations (action, entries, origin)");
    text += destinations_text(e.rules.egress, all);
  }

  if (!e.limits.empty()) {
    text += heading("Limits (limit, enforced by)");
    std::vector<std::vector<std::string>> limits;
    for (const auto& [limit, mechanism] : e.limits)
      limits.push_back({limit, mechanism});
    text += aligned(limits, "  ");
  }

  text += heading("Environment of the command (names)");
  for (const std::string& name : e.env_names)
    text += "  " + printable(name) + "\n";
  if (!e.how) return text;

  text +=
      heading("Plan" + (e.plan_gives_up ? " as it would be with --without " + join_rule_bits(e.plan_gives_up)
                                        : std::string()));
  for (const std::string& argument : e.how->argv)
    text += "  " + quoted(argument) + "\n";
  for (const plan_path& path : e.how->paths) {
    text += "  descriptor " + std::to_string(path.number) + ": path " + quoted(path.host_path) + "\n";
  }
  for (const plan_file& file : e.how->files) {
    text += "  descriptor " + std::to_string(file.number) + ": file " + quoted(file.label) + "\n";
    // Files of arguments are words that end in NUL.
    std::string_view rest = file.bytes;
    while (!rest.empty()) {
      const auto end = rest.find_first_of(std::string_view("\0\n", 2));
      text += "    " + printable(rest.substr(0, end)) + "\n";
      rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    }
  }
  return text;
}

json::value to_json(const explanation& e) {
  json::array rules;
  for (std::size_t i = 0; i < e.rules.rules.size(); ++i) {
    const rule& r = e.rules.rules[i];
    rules.push_back(json::object{{"kind", to_string(r.kind)},
                                 {"path", r.path},
                                 {"guestPath", r.guest_path},
                                 {"readOnly", r.read_only},
                                 {"condition", to_string(r.condition)},
                                 {"origin", to_string(r.origin)},
                                 {"reason", r.reason},
                                 {"bit", join_rule_bits(r.bit)},
                                 {"enforcedBy", layer_of(e, i)}});
  }
  json::object out{{"spec", to_json(e.rules.spec)},
                   {"backend", e.backend},
                   {"refused", e.refusal.has_value()},
                   {"required", json::value_from(rule_bit_names(e.rules.required))},
                   {"waived", json::value_from(rule_bit_names(e.rules.waived))},
                   {"enforced", json::value_from(rule_bit_names(e.enforced))},
                   {"workdir", e.rules.workdir},
                   {"home", e.rules.home},
                   {"tmpdir", e.rules.tmpdir},
                   {"network", network_text(e)},
                   {"warnings", json::value_from(e.rules.warnings)},
                   {"rules", std::move(rules)},
                   {"environmentNames", json::value_from(e.env_names)}};
  if (e.rules.egress.proxied && !e.proxies.empty()) out["egress"] = to_json(e.rules.egress);
  json::object limits;
  for (const auto& [limit, mechanism] : e.limits)
    limits[limit] = mechanism;
  if (!limits.empty()) out["limits"] = std::move(limits);
  if (e.refusal) out["refusal"] = to_json(*e.refusal);
  if (e.how) out["plan"] = to_json(*e.how);
  if (e.plan_gives_up) out["planWithout"] = json::value_from(rule_bit_names(e.plan_gives_up));
  return out;
}

}  // namespace ccbox
