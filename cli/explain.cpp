#include <algorithm>
#include <boost/json.hpp>

#include "commands.hpp"
#include "context.hpp"
#include "explanation.hpp"
#include "output.hpp"
#include "spec_options.hpp"

namespace ccbox {

int explain_command(const words& arguments) {
  spec_options wanted;
  config_options config;
  bool as_json = false, all = false;
  option_parser parser(
      "explain", "[options] [[--] COMMAND [ARGUMENT…]]",
      "Prints the rules of a launch, why each is there and which layer enforces it, and the plan. "
      "Starts nothing. A launch that would be refused is explained too, with exit code 0.",
      word_form::command);
  declare(parser, wanted);
  parser.group("Output");
  parser.flag("--all", all,
              "Print the rules for paths that nothing inside shows, and every destination, too");
  parser.flag("--json", as_json, "Print one JSON document, with every rule");
  declare(parser, config);
  parsed p = parse_or_report(parser, arguments, {{}, true});
  if (p.finished) return p.exit_code;

  host_facts host = gather_host_facts();
  auto sandbox = build_request(wanted, host);
  if (!sandbox) return report(sandbox.error());
  auto context = load_context(config, CCBOX_PROBE_QUICK, std::move(host));
  if (!context) return report(context.error());
  (*context)->ticketing = wanted.ticketing;
  auto explained = explain_launch(**context, sandbox->spec);
  if (!explained) return report(sandbox->origins.translated(explained.error()));
  for (std::string& warning : warnings_about(*sandbox, (*context)->config.environment))
    explained->rules.warnings.push_back(std::move(warning));
  for (const auto& [name, value] : sandbox->env) {
    auto& names = explained->env_names;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (as_json)
    print_json(to_json(*explained));
  else
    print(to_text(*explained, all));
  return 0;
}

}  // namespace ccbox
