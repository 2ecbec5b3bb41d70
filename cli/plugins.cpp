#include <boost/json.hpp>

#include "commands.hpp"
#include "context.hpp"
#include "output.hpp"
#include "sandbox_handle.hpp"

namespace ccbox {

namespace json = boost::json;

namespace {

const char* to_string(plugin_status::outcome state) {
  switch (state) {
    case plugin_status::outcome::loaded:
      return "loaded";
    case plugin_status::outcome::disabled:
      return "disabled";
    case plugin_status::outcome::not_asked_for:
      return "not asked for";
    case plugin_status::outcome::skipped:
      break;
  }
  return "skipped";
}

json::value to_json(const plugin_status& status) {
  json::object out{{"path", status.path},
                   {"state", to_string(status.state)},
                   {"priority", status.priority},
                   {"where", status.where}};
  if (!status.name.empty()) out["name"] = status.name;
  if (!status.version.empty()) out["version"] = status.version;
  if (!status.extensions.empty()) out["extensions"] = json::value_from(status.extensions);
  if (status.probe) out["available"] = status.probe->available;
  if (status.failure) out["error"] = ccbox::to_json(*status.failure);
  return out;
}

void print_text(const std::string& file, const std::vector<plugin_status>& statuses) {
  std::vector<std::vector<std::string>> rows{{"PLUGIN", "STATE", "VERSION", "PRIORITY", "FILE"}};
  for (const plugin_status& status : statuses) {
    rows.push_back({status.name.empty() ? "-" : status.name, to_string(status.state),
                    status.version.empty() ? "-" : printable(status.version), std::to_string(status.priority),
                    printable(status.path)});
  }
  std::string text = "manifest: " + printable(file) + "\n" + aligned(rows);
  for (const plugin_status& status : statuses) {
    if (!status.failure) continue;
    text += toned(tone::bad, "skipped ") + printable(status.path) + " (" + printable(status.where) +
            "): " + printable(status.failure->what) + "\n";
    if (!status.failure->hint.empty()) text += "  hint: " + printable(status.failure->hint) + "\n";
  }
  print(text);
}

}  // namespace

int plugins_command(const words& arguments) {
  config_options config;
  bool as_json = false;
  option_parser parser("plugins", "[options]", "Lists the plugins: loaded, disabled, skipped and why.",
                       word_form::operands);
  parser.flag("--json", as_json, "Print one JSON document");
  declare(parser, config);
  parsed p = parse_or_report(parser, arguments, {});
  if (p.finished) return p.exit_code;

  auto context = load_context(config, CCBOX_PROBE_QUICK, gather_host_facts());
  if (!context) return report(context.error());
  const auto& statuses = (*context)->plugins->statuses();
  const std::string& file = (*context)->plugin_list.file;
  if (!as_json) {
    print_text(file, statuses);
    return 0;
  }
  json::array list;
  for (const plugin_status& status : statuses)
    list.push_back(to_json(status));
  print_json(json::object{{"manifest", file}, {"plugins", std::move(list)}});
  return 0;
}

}  // namespace ccbox
