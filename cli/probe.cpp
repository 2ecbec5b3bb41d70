#include <boost/json.hpp>

#include "commands.hpp"
#include "context.hpp"
#include "limits.hpp"
#include "output.hpp"

namespace ccbox {

namespace json = boost::json;

namespace {

json::value to_json(const registry& plugins, const plugin_status& status) {
  const backend* found = plugins.find_backend(status.name);
  json::object out{{"name", status.name},
                   {"version", status.version},
                   {"backend", found ? found->kind() : ""},
                   {"priority", status.priority},
                   {"available", status.probe->available},
                   {"requiresInstall", status.probe->requires_install},
                   {"enforced", json::value_from(rule_bit_names(status.probe->enforced))},
                   {"note", status.probe->note}};
  if (!status.probe->hint.empty()) out["hint"] = status.probe->hint;
  if (!status.probe->cause.empty()) out["cause"] = status.probe->cause;
  return out;
}

json::value to_json(const limit_capability& limits) {
  return json::object{{"memory", limits.memory},       {"cpus", limits.cpus},
                      {"processes", limits.processes}, {"fileSize", limits.file_size},
                      {"wallTime", limits.wall_time},  {"note", limits.note}};
}

std::string or_none(const std::string& mechanism) {
  return mechanism.empty() ? "not here" : mechanism;
}

void print_text(const registry& plugins, const limit_capability& limits, bool enclosed) {
  std::string text;
  for (const plugin_status& status : plugins.statuses()) {
    if (!status.probe) continue;
    const probe_result& probe = *status.probe;
    const backend* found = plugins.find_backend(status.name);
    text += toned(tone::strong, status.name) + " " + printable(status.version) + "  " +
            (probe.available ? toned(tone::good, "available") : toned(tone::bad, "not available")) + "\n";
    std::vector<std::vector<std::string>> rows;
    if (found) rows.push_back({"kind", found->kind()});
    rows.push_back({"note", printable(probe.note)});
    if (!probe.cause.empty()) rows.push_back({"cause", printable(probe.cause)});
    if (!probe.hint.empty()) rows.push_back({"hint", printable(probe.hint)});
    rows.push_back({"enforces", probe.enforced ? join_rule_bits(probe.enforced) : "nothing"});
    rows.push_back({"does not", join_rule_bits(known_rule_bits() & ~probe.enforced)});
    text += aligned(rows, "  ");
  }
  text += toned(tone::strong, "limits") + "\n";
  std::vector<std::vector<std::string>> rows{{"memory", or_none(limits.memory)},
                                             {"cpus", or_none(limits.cpus)},
                                             {"processes", or_none(limits.processes)},
                                             {"file size", or_none(limits.file_size)},
                                             {"wall time", or_none(limits.wall_time)}};
  if (!limits.note.empty()) rows.push_back({"note", printable(limits.note)});
  text += aligned(rows, "  ");
  text += enclosed ? "A backend that encloses commands is available.\n"
                   : "No backend that encloses commands is available: `ccbox run` refuses.\n";
  print(text);
}

}  // namespace

int probe_command(const words& arguments) {
  config_options config;
  bool as_json = false;
  option_parser parser("probe", "[options]",
                       "Starts a trivial enclosure with every backend and tells what this host can enforce. "
                       "Exit code 0 if a backend that encloses commands is available, else 1.",
                       word_form::operands);
  parser.flag("--json", as_json, "Print one JSON document");
  declare(parser, config);
  parsed p = parse_or_report(parser, arguments, {});
  if (p.finished) return p.exit_code;

  auto context = load_context(config, CCBOX_PROBE_FULL, gather_host_facts());
  if (!context) return report(context.error());
  const registry& plugins = *(*context)->plugins;
  const limit_capability limits = probe_limits();
  bool enclosed = false;
  json::array backends;
  for (const plugin_status& status : plugins.statuses()) {
    enclosed = enclosed || encloses(plugins, status);
    if (as_json && status.probe) backends.push_back(to_json(plugins, status));
  }
  if (as_json) {
    print_json(json::object{{"available", enclosed}, {"backends", backends}, {"limits", to_json(limits)}});
  } else {
    print_text(plugins, limits, enclosed);
  }
  return enclosed ? 0 : 1;
}

}  // namespace ccbox
